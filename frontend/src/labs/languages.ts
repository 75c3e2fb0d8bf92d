// Generated from lab/languages/language.py of warpbook_labs. Do not edit.

import { mark } from '../core/translation';

/** What people call the languages of labs, before translation. */
export const LANGUAGES: Record<string, string> = {
  cuda: mark('CUDA C++'),
  triton: mark('Triton'),
  host: mark('PyTorch host code'),
  plan: mark('Python functions')
};
