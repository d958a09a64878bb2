# Paceline in a container: `docker build -t paceline .`, then
#   docker run --rm -v paceline:/data -v "$PWD/quotas:/quotas:ro" --env-file secrets.env paceline
# The store lies in the volume /data; all containers of one machine that share it keep to one quota.
FROM rust:1-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked && scripts/package-files target/release/paceline /files

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates tzdata \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --user-group --no-create-home --home-dir /data paceline \
    && install -d -o paceline -g paceline -m 0700 /data \
    && install -d -m 0755 /quotas
COPY --from=build /src/target/release/paceline /usr/local/bin/paceline
COPY --from=build /files/man /usr/local/share/man/man1
ENV PACELINE_STORE=/data/store.db PACELINE_QUOTAS=/quotas
USER paceline
WORKDIR /data
VOLUME /data
STOPSIGNAL SIGTERM
ENTRYPOINT ["paceline"]
CMD ["run", "--follow"]
