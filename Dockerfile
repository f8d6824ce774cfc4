# Any image with Node.js 20 or later and npm will do; contrib/image/base.sh makes one of Debian's packages.
ARG BASE=node:24-bookworm-slim

FROM ${BASE} AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY test/e2e/stubs test/e2e/stubs
RUN npm ci
COPY . .
RUN npm run build && npm prune --omit=dev && chmod +x dist/main.js

FROM ${BASE}
# One arena for all threads: glibc leaves freed memory in each, 3 MB of an idle server. What a thousand held syncs are made of has room among
# new objects, so that it is not moved twice (docs/deploying.md).
ENV NODE_ENV=production \
    MALLOC_ARENA_MAX=1 \
    NODE_OPTIONS="--max-semi-space-size=32 --v8-pool-size=1" \
    HEARTH__DATA_DIR=/data \
    HEARTH__LISTEN__HOST=0.0.0.0 \
    HEARTH__LOG__FORMAT=json
COPY --from=build /app/node_modules /app/node_modules
COPY --from=build /app/package.json /app/LICENSE /app/
COPY --from=build /app/migrations /app/migrations
COPY --from=build /app/templates /app/templates
COPY --from=build /app/dist /app/dist
# Postgres wants its user to have a name; images of Node.js have one for 1000, others may not.
RUN (getent passwd 1000 || useradd --uid 1000 --user-group --home-dir /data --no-create-home hearth) \
  && ln -s /app/dist/main.js /usr/local/bin/hearth && install -d -o 1000 -g 1000 -m 0700 /data
USER 1000:1000
WORKDIR /data
VOLUME /data
EXPOSE 8008
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.HEARTH__LISTEN__PORT || 8008}/health/ready`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["hearth"]
CMD ["serve"]
