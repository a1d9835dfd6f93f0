#!/usr/bin/env bash
# Install the locked dependencies into .venv, without the parts of PyTorch that only a GPU needs. Arguments are passed to
# `uv sync`. TRIMTAB_CUDA=1 installs all of PyTorch. TRIMTAB_TORCH_INDEX is the address of an index with PyTorch's build
# without CUDA (docs/how-to/pytorch.md). UV is the program uv.
set -euo pipefail
cd "$(dirname "$0")/../.."
uv=${UV:-uv}

say() { printf 'set-up: %s\n' "$*" >&2; }
stop() { say "$*"; exit 1; }

# The service computes on the processor alone. PyTorch from PyPI depends on CUDA: without a GPU it never loads the packages
# in `unused`, and the loader only looks for the libraries of those in `linked`, which placeholders can answer for.
unused=(triton cuda-bindings cuda-pathfinder nvidia-cuda-cccl nvidia-cusolver nvidia-nvtx)
linked=(nvidia-cublas nvidia-cuda-nvrtc nvidia-cudnn-cu13 nvidia-cufft nvidia-cufile nvidia-cusparse
    nvidia-cusparselt-cu13 nvidia-nccl-cu13 nvidia-nvjitlink nvidia-nvshmem-cu13)

can_link() { # the C compiler and binutils
    local program
    for program in "${CC:-cc}" readelf nm; do command -v "$program" >/dev/null || return 1; done
}

left_out=()
placeholders=false
if [ -n "${TRIMTAB_TORCH_INDEX:-}" ]; then # PyTorch's own build without CUDA
    left_out=(torch "${unused[@]}" "${linked[@]}" nvidia-cuda-runtime nvidia-cuda-cupti cuda-toolkit)
elif [ "${TRIMTAB_CUDA:-}" != 1 ] && [ "$(uname -s)" = Linux ]; then
    left_out=("${unused[@]}")
    if can_link; then
        left_out+=("${linked[@]}")
        placeholders=true
    fi
fi

# uv installs the large file of torch last
if ! compgen -G ".venv/lib/python3*/site-packages/torch/version.py" >/dev/null; then
    size="1.0 GB to download and 2.7 GB unpacked" # with the tools for tests
    [[ " $* " != *" --no-default-groups "* ]] || size="0.7 GB to download and 1.8 GB unpacked"
    say "installing the locked dependencies into .venv: about $size, once, mostly PyTorch"
    $placeholders || [ -n "${TRIMTAB_TORCH_INDEX:-}" ] ||
        say "and 2 GB more to download for CUDA, because there is no C compiler with binutils, or TRIMTAB_CUDA=1 is set"
fi
quiet=--quiet
[ -t 2 ] && quiet=
[ -d .venv ] || quiet=
# Use the installed Python, and never one that uv would download.
"$uv" sync $quiet --locked --no-python-downloads "${left_out[@]/#/--no-install-package=}" "$@" ||
    stop "the dependencies could not be installed; see uv's message above"

if [ -n "${TRIMTAB_TORCH_INDEX:-}" ]; then
    torch=$(sed -n '/^name = "torch"$/{n;s/^version = "\(.*\)"$/\1/p}' uv.lock)
    "$uv" pip install $quiet --python .venv/bin/python --no-deps --index-url "$TRIMTAB_TORCH_INDEX" "torch==$torch+cpu" ||
        stop "PyTorch $torch+cpu could not be installed from TRIMTAB_TORCH_INDEX=$TRIMTAB_TORCH_INDEX; see uv's message above"
else
    .venv/bin/python deploy/checkout/cuda_placeholders.py
fi
