import { parseArgs } from 'node:util'
import { type Administration, userNamed, withAdministration } from './administration.ts'
import { CONFIG_OPTIONS, type Command, EXIT, readConfig, UsageError } from './command.ts'

const OPTIONS = {
  ...CONFIG_OPTIONS,
  name: { type: 'string' },
  'registered-after': { type: 'string' },
  'registered-before': { type: 'string' },
  'seen-at': { type: 'string' },
  user: { type: 'string', multiple: true },
  reason: { type: 'string' },
} as const
const AT = '/_hearth/admin/v1/crowds'

export const crowdCommand: Command = {
  usage: `find | lock | unlock | suspend | release | shadow-ban | lift | redact [--reason TEXT] | quarantine
       each with at least one of
       [--name PATTERN] [--registered-after TIME] [--registered-before TIME] [--seen-at ADDRESS] [--user USER]...
       [--config FILE] [--set KEY=VALUE]...

  find         says whom an act would concern
  lock         refuses all their sessions, until unlock
  suspend      lets them read and not write, until release
  shadow-ban   shows what they send to nobody but themselves, until lift
  redact       removes the content of all that they said, in the background, and takes back their unanswered invitations
  quarantine   hides all files that they have uploaded
  PATTERN      of the name before the colon, with * and ?
  TIME         2026-11-25T03:00Z, or 30m, 12h or 7d ago
  ADDRESS      where one of their devices was seen last
  USER         alice, or @alice:example.org

Administrators are never concerned. The server may run meanwhile or not.`,

  async run(host, words) {
    const { values, positionals } = parseArgs({ args: [...words], options: OPTIONS, allowPositionals: true })
    const { config } = readConfig(host, values)
    const act = ACTS.get(positionals[0] ?? '')
    if (act === undefined || positionals.length > 1) throw new UsageError(`say one of ${[...ACTS.keys()].join(', ')}`)
    const crowd = {
      ...(values.name !== undefined && { name: values.name }),
      ...(values['registered-after'] !== undefined && { registered_after: timeOf(values['registered-after']) }),
      ...(values['registered-before'] !== undefined && { registered_before: timeOf(values['registered-before']) }),
      ...(values['seen-at'] !== undefined && { seen_at: values['seen-at'] }),
      ...(values.user !== undefined && { user_ids: values.user.map((name) => userNamed(name, config)) }),
    }
    if (Object.keys(crowd).length === 0) throw new UsageError('say whom, by --name, --registered-after or another')
    host.print(await withAdministration(host, config, (api) => act(api, crowd, values)))
    return EXIT.ok
  },
}

interface Values {
  readonly reason?: string
}

type Act = (api: Administration, crowd: object, values: Values) => Promise<string>

const accounts = (count: number): string => `${count} ${count === 1 ? 'account' : 'accounts'}`

const restrain =
  (wish: object, done: string): Act =>
  async (api, crowd) => {
    const { total } = await api.call('POST', `${AT}/restrain`, { crowd, ...wish })
    return `${accounts(total)} ${done}.`
  }

const ACTS: ReadonlyMap<string, Act> = new Map<string, Act>([
  ['find', find],
  ['lock', restrain({ lock: true }, 'locked')],
  ['unlock', restrain({ lock: false }, 'unlocked')],
  ['suspend', restrain({ suspend: true }, 'suspended')],
  ['release', restrain({ suspend: false }, 'released')],
  ['shadow-ban', restrain({ shadow_ban: true }, 'shadow-banned')],
  ['lift', restrain({ shadow_ban: false }, 'no longer shadow-banned')],
  ['redact', redact],
  ['quarantine', quarantine],
])

async function find(api: Administration, crowd: object): Promise<string> {
  const { total, user_ids: users } = await api.call('POST', `${AT}/find`, { crowd })
  const more = total > users.length ? [`and ${total - users.length} more`] : []
  return [...users, ...more, accounts(total)].join('\n')
}

async function redact(api: Administration, crowd: object, { reason }: Values): Promise<string> {
  const redaction = reason === undefined ? {} : { reason }
  const { total } = await api.call('POST', `${AT}/redact`, { crowd, redaction })
  return `What ${accounts(total)} said is being redacted.`
}

async function quarantine(api: Administration, crowd: object): Promise<string> {
  const { total, num_quarantined: hidden } = await api.call('POST', `${AT}/quarantine`, { crowd })
  return `${hidden} ${hidden === 1 ? 'file' : 'files'} of ${accounts(total)} hidden.`
}

const UNITS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 }

function timeOf(text: string): number {
  const [, count, unit] = /^(\d{1,6})([mhd])$/.exec(text) ?? []
  const at = count === undefined ? Date.parse(text) : Date.now() - Number(count) * (UNITS[unit ?? ''] ?? 0)
  if (Number.isFinite(at) && at >= 0) return at
  throw new UsageError(`${text} is no time: say 2026-11-25T03:00Z, or 30m, 12h or 7d`)
}
