import type { Config } from '../../config/schema.ts'
import { splitServerName } from '../../core/ids.ts'
import { publicBaseUrl } from '../../domain/public-address.ts'
import { urlHost } from '../serve/banner.ts'

interface Facts {
  /** Hearth's address for a proxy on the same machine. */
  readonly upstream: string
  /** The host of `public_base_url`. */
  readonly home: string
  /** The host of `server_name`, which serves the well-known files. */
  readonly site: string
  readonly maxBodyBytes: number
  readonly maxWaitSeconds: number
}

const WRITERS: Readonly<Record<string, (facts: Facts) => string>> = { nginx, caddy, traefik }

export const PROXIES: readonly string[] = Object.keys(WRITERS)

/** Settings for a reverse proxy, and for Hearth. Undefined for an unknown proxy. */
export function proxySettings(name: string, config: Config): string | undefined {
  const site = splitServerName(config.server_name)?.host ?? config.server_name
  const facts: Facts = {
    upstream: `${upstreamHost(config.listen.host)}:${config.listen.port}`,
    home: config.public_base_url === undefined ? `matrix.${site}` : new URL(publicBaseUrl(config)).hostname,
    site,
    maxBodyBytes: config.limits.max_body_bytes,
    maxWaitSeconds: Math.ceil(config.limits.max_sync_timeout_ms / 1000) + 60,
  }
  const write = Object.hasOwn(WRITERS, name) ? WRITERS[name] : undefined
  return write && `${write(facts)}\n${ours(facts)}`
}

/** A literal address if Hearth listens on all addresses: `localhost` might be of the other IP version. */
function upstreamHost(host: string): string {
  return host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '[::1]' : urlHost(host)
}

function ours({ home, site }: Facts): string {
  return `# And in hearth.yaml, with the proxy on the same machine:
#
#   server_name: ${site}
#   public_base_url: https://${home}
#   trusted_proxies: [127.0.0.1, "::1"]
#   well_known:
#     server: ${home}:443
#
# Then: hearth doctor`
}

function nginx(facts: Facts): string {
  const { upstream, home, site, maxBodyBytes, maxWaitSeconds } = facts
  const pass = `        proxy_pass http://${upstream};  # without a slash at its end: paths stay as they are
        proxy_http_version 1.1;
        proxy_set_header Host $host;
        proxy_set_header X-Forwarded-For $remote_addr;
        proxy_set_header X-Forwarded-Proto $scheme;
        proxy_read_timeout ${maxWaitSeconds}s;  # a sync may wait that long
        client_max_body_size ${maxBodyBytes};`
  const server = (name: string, location: string) => `server {
    listen 443 ssl;
    listen [::]:443 ssl;
    server_name ${name};
    ssl_certificate /etc/letsencrypt/live/${name}/fullchain.pem;
    ssl_certificate_key /etc/letsencrypt/live/${name}/privkey.pem;

    location ${location} {
${pass}
    }
}`
  const homes = server(home, '/').replace(
    '    location / {',
    '    location /_synapse/ { return 404; }  # for administrators: not for everybody\n    location / {',
  )
  if (home === site) return `# nginx, in its http block:\n\n${homes}\n`
  const wellKnown = '~ ^/\\.well-known/(?:matrix|proto)/'
  return `# nginx, in its http block:

${homes}

# In the server that answers for ${site} there may be one already: it needs the location alone.
${server(site, wellKnown)}
`
}

function caddy({ upstream, home, site }: Facts): string {
  const own = `# Caddyfile; certificates come by themselves, X-Forwarded-For too.

${home} {
    @admin path /_synapse/*
    respond @admin 404  # for administrators: not for everybody
    reverse_proxy ${upstream}
}
`
  if (home === site) return own
  return `${own}
# If ${site} has a block already, put these two lines into it.
${site} {
    reverse_proxy /.well-known/matrix/* ${upstream}
    reverse_proxy /.well-known/proto/* ${upstream}
}
`
}

function traefik({ upstream, home, site }: Facts): string {
  const wellKnown = `Host(\`${site}\`) && (PathPrefix(\`/.well-known/matrix/\`) || PathPrefix(\`/.well-known/proto/\`))`
  const rule = home === site ? `Host(\`${home}\`)` : `(Host(\`${home}\`) || (${wellKnown}))`
  return `# Traefik, dynamic configuration (file provider); it sets X-Forwarded-For by itself.
# In the static one, the entry point "websecure" needs, since ids in paths hold encoded characters and uploads take their time:
#
#   http:
#     encodedCharacters: {allowEncodedSlash: true, allowEncodedHash: true, allowEncodedPercent: true,
#       allowEncodedQuestionMark: true, allowEncodedSemicolon: true, allowEncodedBackSlash: true}
#   transport:
#     respondingTimeouts: {readTimeout: 0s}

http:
  routers:
    hearth:
      rule: "${rule} && !PathPrefix(\`/_synapse/\`)"  # which is for administrators
      entryPoints: [websecure]
      service: hearth
      tls:
        certResolver: letsencrypt
  services:
    hearth:
      loadBalancer:
        servers:
          - url: http://${upstream}
`
}
