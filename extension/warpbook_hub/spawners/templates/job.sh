#!/bin/bash
# A notebook server as a job. BatchSpawner fills it in; lines may be added.
#SBATCH --job-name=jupyterhub
#SBATCH --output={{homedir}}/jupyterhub-%j.log
#SBATCH --chdir={{homedir}}
#SBATCH --export={{keepvars}}
#SBATCH --partition={{partition}}
#SBATCH --time={{runtime}}
#SBATCH --cpus-per-task={{nprocs}}
#SBATCH --mem={{memory}}
{% if gres %}#SBATCH --gres={{gres}}
{% endif %}
set -euo pipefail
# Python with jupyterhub, batchspawner and warpbook, the same version as the hub's
export PATH={{bin_folder}}:$PATH
{% if not gres %}# Slurm sets it for a job with a GPU only
export CUDA_VISIBLE_DEVICES=
{% endif %}{{cmd}}
