# The agent with a C compiler, for components that compile. Build it in the repository's root after `make wheels`:
#   docker build -f deploy/images/agent.Dockerfile -t trimtab-agent .
# It has the component gcc-flags. Add others and their programs in an image that begins with `FROM trimtab-agent`.
ARG PYTHON_IMAGE=python:3.11.14-slim-bookworm
FROM ${PYTHON_IMAGE}
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev make && rm -rf /var/lib/apt/lists/* && \
    useradd --system --uid 10001 --home-dir /var/lib/trimtab-agent --create-home trimtab
COPY dist/trimtab_agent-*.whl dist/trimtab_components-*.whl /tmp/wheels/
RUN python3 -m venv /opt/trimtab-agent && \
    /opt/trimtab-agent/bin/pip install --no-cache-dir /tmp/wheels/trimtab_components-*.whl \
    "$(echo /tmp/wheels/trimtab_agent-*.whl)[tracing]" && rm -r /tmp/wheels && \
    mkdir -p /etc/trimtab/components && \
    ln -s "$(/opt/trimtab-agent/bin/trimtab-agent workloads gcc-flags)" /etc/trimtab/components/gcc-flags
ENV PATH=/opt/trimtab-agent/bin:$PATH PYTHONUNBUFFERED=1
USER 10001
ENTRYPOINT ["trimtab-agent"]
