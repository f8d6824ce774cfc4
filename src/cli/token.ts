import { parseArgs } from 'node:util'
import { type Administration, withAdministration } from './administration.ts'
import { CONFIG_OPTIONS, type Command, EXIT, readConfig, UsageError } from './command.ts'
import { minute, table } from './table.ts'

const OPTIONS = {
  ...CONFIG_OPTIONS,
  uses: { type: 'string' },
  days: { type: 'string' },
  json: { type: 'boolean' },
} as const

const AT = '/_synapse/admin/v1/registration_tokens'
const DAY_MS = 24 * 60 * 60 * 1000

export const tokenCommand: Command = {
  usage: `create [TOKEN] [--uses N] [--days N] | list [--json] | delete TOKEN
       all with [--config FILE] [--set KEY=VALUE]...

  create   makes a token by which people register while registration is closed, and prints it
  list     what there is: token, uses, uses allowed, end
  delete   ends one; accounts that were made by it stay
  --uses   so many accounts; without it any number
  --days   so many days; without it for good
  --json   for programs

The server may run meanwhile or not.`,

  async run(host, words) {
    const { values, positionals } = parseArgs({ args: [...words], options: OPTIONS, allowPositionals: true })
    const [action, token, ...rest] = positionals
    const work = workOf(action, token, values)
    if (work === undefined || rest.length > 0) throw new UsageError('say "create", "list" or "delete TOKEN"')
    const { config } = readConfig(host, values)
    host.print(await withAdministration(host, config, work))
    return EXIT.ok
  },
}

interface Values {
  readonly uses?: string
  readonly days?: string
  readonly json?: boolean
}

type Work = (api: Administration) => Promise<string>

function workOf(action: string | undefined, token: string | undefined, values: Values): Work | undefined {
  if (action === 'create') return (api) => create(api, token, values)
  if (action === 'list' && token === undefined) return (api) => list(api, values)
  if (action === 'delete' && token !== undefined) return (api) => remove(api, token)
  return undefined
}

async function create(api: Administration, token: string | undefined, values: Values): Promise<string> {
  const days = count('--days', values.days)
  const made = await api.call('POST', `${AT}/new`, {
    ...(token === undefined ? {} : { token }),
    uses_allowed: count('--uses', values.uses) ?? null,
    expiry_time: days === undefined ? null : Date.now() + days * DAY_MS,
  })
  return made.token
}

interface Listed {
  readonly token: string
  readonly uses_allowed: number | null
  readonly completed: number
  readonly expiry_time: number | null
}

async function list(api: Administration, values: Values): Promise<string> {
  const { registration_tokens: tokens }: { registration_tokens: Listed[] } = await api.call('GET', AT)
  if (values.json) return JSON.stringify(tokens, undefined, 2)
  const rows = tokens.map((one) => [
    one.token,
    String(one.completed),
    one.uses_allowed === null ? 'any' : String(one.uses_allowed),
    minute(one.expiry_time),
  ])
  return table([['token', 'uses', 'of', 'until (UTC)'], ...rows])
}

async function remove(api: Administration, token: string): Promise<string> {
  await api.call('DELETE', `${AT}/${encodeURIComponent(token)}`)
  return 'Nobody registers by it any more.'
}

function count(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (/^\d{1,9}$/.test(text)) return Number(text)
  throw new UsageError(`${option} takes a number`)
}
