// Generated from labs/warpbook_labs/lab/languages/language.py. Do not edit.

import { mark } from '../core/translation';

/** What people call the languages of labs, before translation. */
export const LANGUAGES: Record<string, string> = {
  cuda: mark('CUDA C++'),
  triton: mark('Triton'),
  host: mark('PyTorch host code'),
  plan: mark('Python functions')
};
