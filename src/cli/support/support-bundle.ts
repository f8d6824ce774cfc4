import { arch, cpus, freemem, platform, release, totalmem } from 'node:os'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import type { LoadedConfig } from '../../config/load.ts'
import { printConfig } from '../../config/render.ts'
import { reportDatabase } from '../../store/db/database-report.ts'
import { isWriterPresent, WRITER } from '../../store/db/writer-lock.ts'
import { withAdministration } from '../administration.ts'
import { writeArchive } from '../archive/archive.ts'
import { CONFIG_OPTIONS, type Command, EXIT, type Host, readConfig, UsageError } from '../command.ts'
import { isDatabaseAtHand, withDatabase } from '../database.ts'
import { startProblems } from '../serve/start-problems.ts'
import { withoutCredentials } from './without-credentials.ts'

export const supportBundleCommand: Command = {
  usage: `[FILE] [--config FILE] [--set KEY=VALUE]...

  FILE   where to write; without it hearth-support-DATE.tar.gz in this directory

Collects what a bug report needs into one archive: versions, the configuration without secrets, what is wrong with it, metrics,
what Postgres says of tables and slow statements, and the newest warnings and errors. There is no message, no token and no
password in it. Of names of users, rooms and servers, and of addresses, there are those that the configuration has. Look into it
before you send it. The server may run meanwhile or not; some parts need it to run.`,

  async run(host, words) {
    const { values, positionals } = parseArgs({ args: [...words], options: CONFIG_OPTIONS, allowPositionals: true })
    const now = Date.now()
    const [name = `hearth-support-${new Date(now).toISOString().slice(0, 19).replaceAll(':', '')}.tar.gz`, ...rest] =
      positionals
    if (rest.length > 0) throw new UsageError('name one file')
    const loaded = readConfig(host, values)
    const path = resolve(host.directory, name)
    const left = await writeArchive(path, now, async (archive) => {
      const missing: string[] = []
      for (const [part, make] of partsOf(host, loaded)) {
        const content = await make().catch((error: unknown) => {
          missing.push(part)
          return `This could not be collected: ${(error as Error).message}\n`
        })
        const text = typeof content === 'string' ? content : `${JSON.stringify(content, undefined, 2)}\n`
        await archive.add(`hearth-support/${part}`, withoutCredentials(text, loaded.config))
      }
      return missing
    })
    if (left.length > 0) host.complain(`Not all could be collected: ${left.join(', ')}; each says why.`)
    host.print(`${path} has no secrets and no messages in it; look into it before you send it.`)
    return EXIT.ok
  },
}

type Part = readonly [name: string, make: () => Promise<string | object>]

function partsOf(host: Host, loaded: LoadedConfig): readonly Part[] {
  const { config } = loaded
  const isRunning = async (): Promise<boolean> =>
    (await isDatabaseAtHand(config)) && (await withDatabase(host, config, (db) => isWriterPresent(db, WRITER)))
  let asked: Promise<{ metrics: string; recent_errors: object[] }> | undefined
  const ask = () => {
    asked ??= (async () => {
      if (!(await isRunning())) throw new Error('no server runs')
      return withAdministration(host, config, (api) => api.call('GET', '/_hearth/admin/v1/diagnostics'))
    })()
    return asked
  }
  return [
    ['versions.json', async () => versions(host)],
    ['configuration.txt', async () => `${printConfig(loaded)}\n`],
    ['configuration-problems.json', async () => startProblems(loaded)],
    ['database.json', () => withDatabase(host, config, (db) => reportDatabase({ query: db.scan }))],
    ['metrics.txt', async () => (await ask()).metrics],
    ['recent-errors.json', async () => (await ask()).recent_errors],
    [
      'configuration-changes.json',
      async () => {
        await ask()
        return withAdministration(host, config, (api) => api.call('GET', '/_hearth/admin/v1/config_changes'))
      },
    ],
  ]
}

function versions(host: Host): object {
  return {
    hearth: host.version,
    node: host.nodeVersion,
    system: `${platform()} ${release()} ${arch()}`,
    processors: cpus().length,
    memory_bytes: { all: totalmem(), free: freemem() },
    made_at: new Date().toISOString(),
  }
}
