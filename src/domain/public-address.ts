import type { Config } from '../config/schema.ts'

/** Where clients reach this server: as configured, else the address it listens on. No slash at its end. */
export function publicBaseUrl(config: Pick<Config, 'public_base_url' | 'listen'>): string {
  if (config.public_base_url !== undefined) return config.public_base_url.replace(/\/+$/, '')
  const { host, port } = config.listen
  const reachable = host === '0.0.0.0' || host === '::' ? 'localhost' : host
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`
}

/** Where clients and homeservers reach the identity service. No slash at its end. */
export function identityBaseUrl(config: Pick<Config, 'public_base_url' | 'listen' | 'identity'>): string {
  return config.identity.base_url?.replace(/\/+$/, '') ?? publicBaseUrl(config)
}

/** What the server calls itself to people who know nothing of it: in messages and on their pages. */
export function brandOf({ identity, server_name }: Pick<Config, 'identity' | 'server_name'>): string {
  return identity.brand ?? server_name
}
