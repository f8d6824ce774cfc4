import { existsSync } from 'node:fs'
import { parseArgs } from 'node:util'
import type { Config } from '../config/schema.ts'
import { isServerName, type ServerName } from '../core/ids.ts'
import type { SigningKey } from '../core/signing/key.ts'
import { createGuardedClient } from '../outbound/http.ts'
import { createNames } from '../outbound/names.ts'
import { CONFIG_OPTIONS, type Command, EXIT, type Host, readConfig, UsageError } from './command.ts'
import { countOf, jsonReport, printReport } from './doctor/report.ts'
import { checkServer } from './federation-check/check-server.ts'
import { resetServer, showStatus } from './federation-queues/status.ts'
import { createLog } from './serve/log.ts'
import { loadSigningKey, signingKeyPath } from './serve/signing-key-file.ts'

export const federationCommand: Command = {
  usage: `check SERVER [--json]
       federation status [SERVER] [--all] [--json]
       federation reset SERVER
       all with [--config FILE] [--set KEY=VALUE]...

  check    goes the way to another homeserver step by step, as this server would, and says what it found: where its name
           leads, which addresses that has, whether TLS and certificate are good, what answers, its keys, and whether it
           believes a signature of ours, for which it has to find the way to us. Exit code 1 if there is a problem;
           nothing is changed here or there
  status   the servers that have not been sent everything or do not answer, since when, why, and when they are tried again
  reset    tries a server again at once that did not answer
  --all    also the servers that have everything
  --json   for programs

The server may run meanwhile or not. The way to this server is what "doctor" looks at.`,

  async run(host, words) {
    const options = { ...CONFIG_OPTIONS, json: { type: 'boolean' }, all: { type: 'boolean' } } as const
    const { values, positionals } = parseArgs({ args: [...words], options, allowPositionals: true })
    const [action, server, ...rest] = positionals
    const isKnown = action === 'status' || ((action === 'check' || action === 'reset') && server !== undefined)
    if (!isKnown || rest.length > 0) throw new UsageError('say "check SERVER", "status" or "reset SERVER"')
    if (server !== undefined && !isServerName(server)) {
      throw new UsageError(
        `"${server}" is no server name: the part after the colon of a user's id, such as example.org`,
      )
    }
    const { config } = readConfig(host, values)
    if (action === 'status' || server === undefined) {
      host.print(await showStatus(host, config, server, values))
      return EXIT.ok
    }
    if (action === 'reset') {
      host.print(await resetServer(host, config, server))
      return EXIT.ok
    }
    return check(host, config, server, values.json ?? false)
  },
}

async function check(host: Host, config: Config, server: ServerName, isForPrograms: boolean): Promise<number> {
  const log = createLog({ level: 'error', format: 'auto' }, host.isTerminal)
  const names = createNames()
  const userAgent = `Hearth/${host.version}`
  const client = await createGuardedClient({ config, log, names, userAgent, readsCertificates: true })
  try {
    const signingKey = await ownKey(config)
    const sections = await checkServer(server, { config, client, names, signingKey, now: Date.now })
    const isColoured = host.isTerminal && !host.env.NO_COLOR
    const title = `Hearth ${host.version} went from ${config.server_name} to ${server}`
    host.print(isForPrograms ? jsonReport(server, sections) : printReport(title, sections, isColoured))
    return countOf(sections, 'problem') === 0 ? EXIT.ok : EXIT.failure
  } finally {
    await client.close()
  }
}

/** Our signing key, if there is one; a check of others does not create a key. */
async function ownKey({ data_dir }: Config): Promise<SigningKey | undefined> {
  return existsSync(signingKeyPath(data_dir)) ? (await loadSigningKey(data_dir)).current : undefined
}
