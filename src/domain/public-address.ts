import type { Config } from '../config/schema.ts'

/** The URL at which clients reach this server: the configured one, or else the address it listens on. It has no slash at its end. */
export function publicBaseUrl(config: Pick<Config, 'public_base_url' | 'listen'>): string {
  if (config.public_base_url !== undefined) return config.public_base_url.replace(/\/+$/, '')
  const { host, port } = config.listen
  const reachable = host === '0.0.0.0' || host === '::' ? 'localhost' : host
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`
}

/** The URL at which clients and homeservers reach the identity service. It has no slash at its end. */
export function identityBaseUrl(config: Pick<Config, 'public_base_url' | 'listen' | 'identity'>): string {
  return config.identity.base_url?.replace(/\/+$/, '') ?? publicBaseUrl(config)
}

/** The server's name for people, in messages and on pages. */
export function brandOf({ identity, server_name }: Pick<Config, 'identity' | 'server_name'>): string {
  return identity.brand ?? server_name
}
