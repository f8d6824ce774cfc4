import { parseArgs } from 'node:util'
import type { Config } from '../config/schema.ts'
import { isIdentityServed } from '../domain/identity/is-served.ts'
import { createGuardedClient } from '../outbound/http.ts'
import { createNames } from '../outbound/names.ts'
import { CONFIG_OPTIONS, type Command, EXIT, type Host, readConfig, UsageError } from './command.ts'
import { examineAddresses } from './doctor/addresses.ts'
import { examineCalls } from './doctor/calls.ts'
import { examineClients } from './doctor/clients.ts'
import { examineClock } from './doctor/clock.ts'
import { examineDatabase } from './doctor/database.ts'
import { type Examination, isTrial, type Section, skipped } from './doctor/finding.ts'
import { examineIdentity } from './doctor/identity.ts'
import { examineMail } from './doctor/mail.ts'
import { examineProxy } from './doctor/proxy.ts'
import { PROXIES, proxySettings } from './doctor/proxy-settings.ts'
import { examineReplicas } from './doctor/replicas.ts'
import { countOf, jsonReport, printReport } from './doctor/report.ts'
import { examineServers } from './doctor/servers.ts'
import { examineSetup } from './doctor/setup.ts'
import { examineSms } from './doctor/sms.ts'
import { createLog } from './serve/log.ts'

const OPTIONS = {
  ...CONFIG_OPTIONS,
  json: { type: 'boolean' },
  outside: { type: 'boolean' },
  proxy: { type: 'string' },
  'time-server': { type: 'string', default: 'pool.ntp.org' },
} as const

export const doctorCommand: Command = {
  usage: `[--outside] [--json] [--time-server HOST] [--config FILE] [--set KEY=VALUE]...
       doctor --proxy NAME

  Looks at this server from outside inwards, and says what is wrong and what to do about it: DNS, well-known, certificates, the
  reverse proxy, how clients and other servers get here, the clock, the database, the disk, the mail server, the
  gateway for text messages, the servers for calls.
  The server should be running. Exit code 1 if there is a problem; nothing is changed.

  --outside      only what can be seen from anywhere: run it on another machine with the same configuration
  --time-server  what the clock is compared with, pool.ntp.org unless said otherwise
  --json         for programs
  --proxy        prints what to put into ${PROXIES.join(', ')} for this configuration`,

  async run(host, words) {
    const { values } = parseArgs({ args: [...words], options: OPTIONS })
    const { config } = readConfig(host, values)
    if (values.proxy !== undefined) {
      const settings = proxySettings(values.proxy, config)
      if (settings === undefined) throw new UsageError(`--proxy is one of ${PROXIES.join(', ')}`)
      host.print(settings)
      return EXIT.ok
    }
    const names = createNames()
    const open = { ...config, outbound: { ...config.outbound, allow_ranges: ['0.0.0.0/0', '::/0'] } }
    const log = createLog({ level: 'error', format: 'auto' }, host.isTerminal)
    const userAgent = `Hearth/${host.version}`
    const client = await createGuardedClient({ config: open, log, names, userAgent, readsCertificates: true })
    try {
      const examination = { config, client, names, now: Date.now }
      const sections = [
        ...(values.outside ? [] : await examineInside(examination, host, values['time-server'])),
        ...(await examineOutside(examination)),
      ]
      host.print(values.json ? jsonReport(config.server_name, sections) : reportFor(host, config, sections))
      return countOf(sections, 'problem') === 0 ? EXIT.ok : EXIT.failure
    } finally {
      await client.close()
    }
  },
}

function reportFor(host: Host, config: Config, sections: readonly Section[]): string {
  const isColoured = host.isTerminal && !host.env.NO_COLOR
  return printReport(`Hearth ${host.version} looked at ${config.server_name}`, sections, isColoured)
}

/** The checks that need this machine. */
export async function examineInside(
  examination: Examination,
  host: Pick<Host, 'nodeVersion'>,
  timeServer: string,
): Promise<readonly Section[]> {
  const { config, names, now } = examination
  const [setup, clock, database, replicas, messages] = await Promise.all([
    examineSetup(config, host.nodeVersion, now),
    examineClock(names, timeServer, now),
    examineDatabase(config, now),
    examineReplicas(config),
    isIdentityServed(config) ? Promise.all([examineMail(config), examineSms(examination)]) : [],
  ])
  return [
    { title: 'This machine', findings: [...setup, clock] },
    { title: 'Database', findings: [...database, ...replicas] },
    ...(messages.length > 0 ? [{ title: 'Mail and text messages', findings: messages }] : []),
  ]
}

/** The checks of what others see, in the order of their requests. */
export async function examineOutside(examination: Examination): Promise<readonly Section[]> {
  const { config } = examination
  if (isTrial(config)) {
    const text = `nobody looks for a server called ${config.server_name}; set server_name, and ask again`
    return [{ title: 'From outside', findings: [skipped('everything', text)] }]
  }
  const sections: [boolean, string, typeof examineAddresses][] = [
    [true, 'Names', examineAddresses],
    [config.roles.includes('client'), 'For clients', examineClients],
    [config.roles.includes('client'), 'Through the proxy', examineProxy],
    [config.roles.includes('client'), 'For other servers', examineServers],
    [config.roles.includes('client'), 'Calls', examineCalls],
    [isIdentityServed(config), 'Identity service', examineIdentity],
  ]
  const wanted = sections.filter(([isWanted]) => isWanted)
  return Promise.all(wanted.map(async ([, title, examine]) => ({ title, findings: await examine(examination) })))
}
