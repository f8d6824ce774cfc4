import type { Config } from '../../config/schema.ts'
import { isRegistrationOpen } from '../../domain/accounts/registration-policy.ts'
import { isIdentityServed } from '../../domain/identity/is-served.ts'

export interface BannerFacts {
  readonly version: string
  readonly config: Config
  readonly configFile: string | undefined
  readonly port: number
  readonly httpsPorts: readonly number[]
  readonly metricsPort: number | undefined
  readonly isEmbedded: boolean
  readonly program: string
  readonly seconds: number
}

/** The text for the operator after a start. */
export function banner(facts: BannerFacts): string {
  const { config } = facts
  const address = `http://${urlHost(config.listen.host)}:${facts.port}`
  const rows: [string, string][] = [
    ['Server name', serverName(config)],
    ...homeserverRows(facts, address),
    ...httpsRows(facts),
    ...identityRows(config, address),
    ['Data', `${config.data_dir}${facts.isEmbedded ? ' (with its own Postgres)' : ''}`],
    ['Settings', facts.configFile ?? `defaults and environment; "${facts.program} init" writes a file`],
  ]
  if (facts.metricsPort !== undefined) {
    rows.push(['Metrics', `http://${urlHost(config.metrics.host)}:${facts.metricsPort}/metrics`])
  }
  const body = rows.map(([name, value]) => `  ${name.padEnd(13)}${value}`).join('\n')
  return `\n  Hearth ${facts.version} is ready after ${facts.seconds.toFixed(1)} s\n\n${body}\n`
}

function homeserverRows({ config, program }: BannerFacts, address: string): [string, string][] {
  if (!config.roles.includes('client')) return []
  return [
    ['For clients', config.public_base_url ?? address],
    ['First user', firstUser(config, program)],
  ]
}

function httpsRows({ config, httpsPorts }: BannerFacts): [string, string][] {
  const places = httpsPorts.map((port) => `https://${urlHost(config.https.host)}:${port}`)
  return places.length === 0 ? [] : [['HTTPS', places.join(', ')]]
}

function identityRows(config: Config, address: string): [string, string][] {
  if (!isIdentityServed(config)) return []
  return [['Identity', config.identity.base_url ?? config.public_base_url ?? address]]
}

function serverName(config: Config): string {
  const { server_name } = config
  return server_name === 'localhost'
    ? 'localhost, for trying out; set server_name before anyone depends on it'
    : server_name
}

function firstUser(config: Config, program: string): string {
  const command = `${program} user create alice`
  return isRegistrationOpen(config, false) ? `${command}, or register in a client` : command
}

/** An address in the form of a URL's host; "all addresses" becomes `localhost`. */
export function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost'
  return host.includes(':') ? `[${host}]` : host
}
