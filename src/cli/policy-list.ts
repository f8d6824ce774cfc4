import { parseArgs } from 'node:util'
import { isRoomId } from '../core/ids.ts'
import { type Administration, withAdministration } from './administration.ts'
import { CONFIG_OPTIONS, type Command, EXIT, readConfig, UsageError } from './command.ts'
import { printable, table } from './table.ts'

const AT = '/_hearth/admin/v1/policy_lists'

export const policyListCommand: Command = {
  usage: `show [--config FILE] [--set KEY=VALUE]...
       hearth policy-list try|follow|remove ROOM [--config FILE] [--set KEY=VALUE]...

show     the policy lists that this server follows
try      what following the list in a room would do: nothing is done
follow   this server refuses what the list bans, from now on
remove   the rules of the list end here, and the bans that they brought about

ROOM is a room id. Somebody of this server must be in the room.

The server may run meanwhile or not.`,

  async run(host, words) {
    const { values, positionals } = parseArgs({ args: [...words], options: CONFIG_OPTIONS, allowPositionals: true })
    const work = workOf(positionals)
    if (work === undefined) throw new UsageError('say "policy-list show", or "try", "follow" or "remove" and a room id')
    const { config } = readConfig(host, values)
    host.print(await withAdministration(host, config, work))
    return EXIT.ok
  },
}

type Work = (api: Administration) => Promise<string>

function workOf([action, room, ...rest]: readonly string[]): Work | undefined {
  if (rest.length > 0) return undefined
  if (action === 'show' && room === undefined) return show
  if (room === undefined || !isRoomId(room)) return undefined
  const path = `${AT}/${encodeURIComponent(room)}`
  if (action === 'try') return async (api) => describe(await api.call('GET', `${path}/preview`))
  if (action === 'follow') return async (api) => stateLine(await api.call('PUT', path))
  if (action !== 'remove') return undefined
  return async (api) => {
    await api.call('DELETE', path)
    return `${room} is followed no more.`
  }
}

interface List {
  readonly room_id: string
  readonly state: string
  readonly rules: number
  readonly warning?: string
}

const stateLine = ({ room_id, state, rules, warning }: List): string =>
  `${room_id} is ${state}, with ${rules} ${rules === 1 ? 'rule' : 'rules'}.${warning === undefined ? '' : ` ${printable(warning)}`}`

async function show(api: Administration): Promise<string> {
  const { policy_lists: lists }: { policy_lists: List[] } = await api.call('GET', AT)
  if (lists.length === 0) return 'This server follows no list.'
  const rows = lists.map(({ room_id, state, rules, warning }) => [room_id, state, String(rules), warning ?? ''])
  return table([['room', 'state', 'rules', ''], ...rows])
}

interface Effect<T> {
  readonly total: number
  readonly examples: readonly T[]
}

interface Effects extends Omit<List, 'rules'> {
  readonly rules: { readonly user: number; readonly room: number; readonly server: number }
  readonly accounts: Effect<string>
  readonly servers: Effect<string>
  readonly rooms: Effect<string>
  readonly bans: Effect<{ readonly user_id: string; readonly room_id: string }>
  readonly acls: number
  readonly is_whole: boolean
}

function describe({ rules, accounts, servers, rooms, bans, acls, ...list }: Effects): string {
  const part = ({ total, examples }: Effect<string>, what: string) => [
    `${total} ${what}${total === 0 ? '' : ':'}`,
    ...examples.map((one) => `  ${one}`),
    ...(total > examples.length ? [`  and ${total - examples.length} more`] : []),
  ]
  const pairs = { ...bans, examples: bans.examples.map(({ user_id, room_id }) => `${user_id} from ${room_id}`) }
  return [
    `Rules: ${rules.user} about users, ${rules.server} about servers, ${rules.room} about rooms. The list would be ${list.state}.`,
    ...(list.warning === undefined ? [] : [list.warning]),
    'Following it would ban, besides what is banned already:',
    ...part(accounts, 'accounts of this server'),
    ...part(servers, 'servers that are known here'),
    ...part(rooms, 'rooms that are known here'),
    ...part(pairs, 'people from guarded rooms, where the moderator may'),
    `The server ACLs of ${acls} rooms would change.`,
    ...(list.is_whole ? [] : ['There was too much to look at everything: there is more of that.']),
  ]
    .map(printable)
    .join('\n')
}
