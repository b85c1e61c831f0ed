# The job image: `rollup run` under a plain user. Built by docker-compose.yml; needs nothing but this folder.
FROM python:3.12-slim-bookworm
RUN apt-get update && apt-get install --yes --no-install-recommends openjdk-17-jre-headless tini \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 10001 rollup \
    && install -d -o rollup -g rollup /data
WORKDIR /app
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY rollup rollup
COPY ddl ddl
COPY jobs jobs
COPY conf conf
RUN pip install --no-cache-dir '.[job]'
USER rollup
# The Java libraries become part of the image, so that a container starts without the network, and what Java loads for a
# job, so that it starts sooner.
RUN python -m rollup.jars && python -m rollup.archive
VOLUME /data
# tini passes SIGTERM on, and the job then ends between two batches.
ENTRYPOINT ["tini", "--", "rollup"]
CMD ["run", "/conf/job.toml"]
