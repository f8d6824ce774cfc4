import { isIP } from 'node:net'
import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'

type PolicyConfig = Pick<Config, 'listen' | 'https' | 'trusted_proxies' | 'public_base_url'> & {
  readonly registration: Pick<Config['registration'], 'enabled'>
}

function isLoopback(host: string): boolean {
  if (host === 'localhost' || host === '::1' || host === '[::1]') return true
  return isIP(host) === 4 && host.startsWith('127.')
}

/** Whether only this machine reaches it, also through no proxy that the configuration names. */
export function isOnlyLocal(config: Pick<PolicyConfig, 'listen' | 'https' | 'trusted_proxies'>): boolean {
  const { listen, https, trusted_proxies } = config
  const isHttpsLocal = https.certificate_file === undefined || isLoopback(https.host)
  return isLoopback(listen.host) && listen.socket === undefined && isHttpsLocal && trusted_proxies.length === 0
}

/**
 * Whether anybody who reaches the server may make an account.
 *
 * `auto` means: only if nobody outside this machine can reach it. A reverse proxy listens elsewhere and calls from loopback, so any sign
 * of a proxy, in the configuration or in the request, closes registration.
 */
export function isRegistrationOpen(config: PolicyConfig, isForwarded: boolean): boolean {
  const { enabled } = config.registration
  if (enabled !== 'auto') return enabled
  const { public_base_url } = config
  const isPublic = public_base_url !== undefined && !isLoopback(new URL(public_base_url).hostname)
  return isOnlyLocal(config) && !isPublic && !isForwarded
}

/** The error for people who may not register, with what the operator can do about it. */
export function registrationClosed(): ProtocolError {
  return new ProtocolError(
    'M_FORBIDDEN',
    'Registration is closed on this server. Its operator can make an account with `hearth user create`, ' +
      'give out a registration token (`registration.token`), or open it to everyone (`registration.enabled: true`).',
  )
}
