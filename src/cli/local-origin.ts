import type { Config } from '../config/schema.ts'

/** Where a program on this machine reaches the server over HTTP. */
export const localOrigin = ({ host, port }: Config['listen']): string => `http://${loopbackOf(host)}:${port}`

function loopbackOf(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}
