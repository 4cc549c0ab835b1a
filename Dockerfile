# Images of oneturn. Choose one with --target:
#   worker         the worker with Python for Python tools (the default, the last stage)
#   worker-static  the worker alone, for Go tools
#   gateway        the endpoints for frontends
#   publisher      the command that publishes turns
#   turnctl        the operators' command

FROM --platform=$BUILDPLATFORM golang:1.26.8-trixie AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download && go mod verify
COPY . .
ARG TARGETOS TARGETARCH
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -buildvcs=false -ldflags='-s -w' -o /out/bin/ ./cmd/worker ./cmd/gateway ./cmd/publisher ./cmd/turnctl && \
    mkdir /out/data

# No shell, no package manager: certificates and one binary, as an unprivileged user.
FROM scratch AS static
LABEL org.opencontainers.image.title="oneturn" \
      org.opencontainers.image.source="https://github.com/oneturn/oneturn" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
USER 65532:65532

FROM static AS gateway
COPY --from=build /out/bin/gateway /usr/local/bin/
ENTRYPOINT ["/usr/local/bin/gateway"]

FROM static AS publisher
COPY --from=build /out/bin/publisher /usr/local/bin/
ENTRYPOINT ["/usr/local/bin/publisher"]

FROM static AS turnctl
COPY --from=build /out/bin/turnctl /usr/local/bin/
ENTRYPOINT ["/usr/local/bin/turnctl"]

FROM static AS worker-static
COPY --from=build --chown=65532:65532 /out/data /data
COPY --from=build /out/bin/worker /usr/local/bin/
ENV ONETURN_STORE=/data ONETURN_WORKFLOWS=/workflows
ENTRYPOINT ["/usr/local/bin/worker"]

FROM python:3.13.11-slim-trixie AS worker
LABEL org.opencontainers.image.title="oneturn worker" \
      org.opencontainers.image.source="https://github.com/oneturn/oneturn" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN useradd --system --uid 65532 --user-group --no-create-home --home-dir /nonexistent oneturn
COPY --from=build --chown=65532:65532 /out/data /data
COPY --from=build /out/bin/worker /usr/local/bin/
ENV ONETURN_STORE=/data ONETURN_WORKFLOWS=/workflows
USER 65532:65532
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 \
    CMD ["python3", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/readyz', timeout=4)"]
ENTRYPOINT ["/usr/local/bin/worker"]
