import { pino } from 'pino'
import type { Config } from '../../src/config/schema.ts'
import { createGuardedClient, type GuardedClient, type HttpRequest } from '../../src/outbound/http.ts'
import { createNames, type Names } from '../../src/outbound/names.ts'
import { type Authority, createAuthority } from './certificate.ts'
import { type DnsServer, startDnsServer } from './dns-server.ts'

/** What a server of a test finds outside: names, an authority that it trusts, and a client that may reach 127.0.0.1 alone. */
export interface Outside {
  readonly authority: Authority
  readonly dns: DnsServer
  readonly names: Names
  readonly client: GuardedClient
  /** The client, with connections for `host:port` led to a port of this machine: for ports that no test may listen on. */
  leading(to: ReadonlyMap<string, number>): GuardedClient
  close(): Promise<void>
}

export function outboundConfig(values: Partial<Config['outbound']> = {}): Pick<Config, 'outbound'> {
  return { outbound: { allow_ranges: ['127.0.0.1'], no_proxy: [], dialect: 'auto', key_servers: [], ...values } }
}

export async function openOutside(): Promise<Outside> {
  const authority = createAuthority()
  const dns = await startDnsServer()
  const names = createNames([dns.address])
  const client = await createGuardedClient({
    config: outboundConfig({ ca_file: authority.file }),
    log: pino({ level: 'silent' }),
    names,
    readsCertificates: true,
  })
  return {
    authority,
    dns,
    names,
    client,
    leading(to) {
      function led<Request extends HttpRequest>(request: Request): Request {
        const { hostname, port } = new URL(request.url)
        const wanted =
          request.via === undefined ? `${hostname}:${port || 443}` : `${request.via.host}:${request.via.port}`
        const found = to.get(wanted)
        return found === undefined ? request : { ...request, via: { host: '127.0.0.1', port: found } }
      }
      return {
        request: (request) => client.request(led(request)),
        stream: (request) => client.stream(led(request)),
        close: async () => {},
      }
    },
    async close() {
      await client.close()
      await dns.close()
      authority.remove()
    },
  }
}
