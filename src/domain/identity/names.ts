import type { Config } from '../../config/schema.ts'
import { identityBaseUrl } from '../public-address.ts'

/** The names by which others may know this identity service: the server name, and the host of its URL with and without the port. */
export function identityNames(
  config: Pick<Config, 'server_name' | 'public_base_url' | 'listen' | 'identity'>,
): readonly string[] {
  const { host, hostname, port, protocol } = new URL(identityBaseUrl(config))
  const standard = protocol === 'https:' ? '443' : '80'
  return [...new Set([config.server_name, host, `${hostname}:${port || standard}`, hostname])]
}
