# All processes of the service, its console and its documentation. Build it in the repository's root:
#   docker build -f deploy/images/service.Dockerfile -t trimtab .
# HOSTING.md says how to fix the base images by their digests.
ARG NODE_IMAGE=node:22.21.1-bookworm-slim
ARG PYTHON_IMAGE=python:3.11.14-slim-bookworm
FROM ${NODE_IMAGE} AS node

FROM ${PYTHON_IMAGE} AS build
COPY --from=node /usr/local/bin/node /usr/local/bin/
COPY --from=node /usr/local/lib/node_modules/npm /usr/local/lib/node_modules/npm
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm && pip install --no-cache-dir uv==0.13.9
WORKDIR /opt/trimtab
COPY . .
# Set up as in any checkout, then keep only what the service itself needs.
RUN CI=true deploy/checkout/setup.sh && uv sync --locked --no-default-groups --extra tracing --no-editable --python /usr/local/bin/python3.11

FROM ${PYTHON_IMAGE}
RUN useradd --system --uid 10001 --no-create-home trimtab
WORKDIR /opt/trimtab
COPY --from=build /opt/trimtab/.venv .venv
COPY --from=build /opt/trimtab/web/dist web/dist
COPY --from=build /opt/trimtab/docs/_site docs/_site
COPY service service
COPY --from=build /opt/trimtab/service/_gen service/_gen
COPY migrations migrations
ENV PATH=/opt/trimtab/.venv/bin:$PATH PYTHONPATH=/opt/trimtab PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 \
    TRIMTAB_CONSOLE_DIR=/opt/trimtab/web/dist \
    TRIMTAB_DOCS_DIR=/opt/trimtab/docs/_site HOME=/tmp
USER 10001
ENTRYPOINT ["trimtab-service"]
