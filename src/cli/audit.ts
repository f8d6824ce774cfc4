import { parseArgs } from 'node:util'
import { withAdministration } from './administration.ts'
import { CONFIG_OPTIONS, type Command, EXIT, readConfig, UsageError } from './command.ts'
import { minute, table } from './table.ts'

const OPTIONS = {
  ...CONFIG_OPTIONS,
  actor: { type: 'string' },
  target: { type: 'string' },
  limit: { type: 'string' },
  json: { type: 'boolean' },
} as const

interface ListedAct {
  readonly at: number
  readonly actor: string
  readonly act: string
  readonly target: string
  readonly outcome: string
}

export const auditCommand: Command = {
  usage: `[--actor NAME] [--target NAME] [--limit N] [--json] [--config FILE] [--set KEY=VALUE]...

Who administered this server: when (UTC), who, how it ended, what, and on whom. The newest comes first.

  --actor    of one administrator, such as @alice:example.org, "command line" or "shared secret"
  --target   on one user or room, by its whole id
  --limit    so many; 100 without it
  --json     for programs

The server may run meanwhile or not.`,

  async run(host, words) {
    const { values, positionals } = parseArgs({ args: [...words], options: OPTIONS, allowPositionals: true })
    if (positionals.length > 0) throw new UsageError(`"${positionals[0]}" is not understood`)
    const { actor, target, limit = '100' } = values
    if (!/^[1-9]\d{0,3}$/.test(limit)) throw new UsageError('--limit takes a number up to 9999')
    const query = new URLSearchParams({ limit, ...(actor && { actor }), ...(target && { target }) })
    const { config } = readConfig(host, values)
    const { acts }: { acts: ListedAct[] } = await withAdministration(host, config, (api) =>
      api.call('GET', `/_hearth/admin/v1/acts?${query}`),
    )
    const rows = acts.map(({ at, actor, act, target, outcome }) => [minute(at), actor, outcome, act, target])
    host.print(values.json ? JSON.stringify(acts, undefined, 2) : table(rows))
    return EXIT.ok
  },
}
