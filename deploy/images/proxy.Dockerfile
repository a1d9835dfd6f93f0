# Caddy, for a user without rights: its ports lie above 1024, and a copy of the program is not marked to need more.
FROM caddy:2.10.2-alpine
RUN cp /usr/bin/caddy /usr/local/bin/caddy && chown 1000:1000 /data /config
COPY deploy/proxy/Caddyfile /etc/caddy/Caddyfile
USER 1000:1000
CMD ["caddy", "run", "--config", "/etc/caddy/Caddyfile", "--adapter", "caddyfile"]
