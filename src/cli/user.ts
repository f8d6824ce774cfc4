import { parseArgs } from 'node:util'
import type { Config } from '../config/schema.ts'
import { type Administration, userNamed, withAdministration } from './administration.ts'
import { CONFIG_OPTIONS, type Command, EXIT, type Host, readConfig, UsageError } from './command.ts'
import { exportUser } from './export/user-export.ts'
import { minute, table } from './table.ts'
import { makeUser } from './user-create.ts'

const OPTIONS = {
  ...CONFIG_OPTIONS,
  admin: { type: 'boolean' },
  name: { type: 'string' },
  admins: { type: 'boolean' },
  deactivated: { type: 'boolean' },
  'keep-devices': { type: 'boolean' },
  erase: { type: 'boolean' },
  json: { type: 'boolean' },
  file: { type: 'string' },
} as const

interface Values {
  readonly name?: string
  readonly admins?: boolean
  readonly deactivated?: boolean
  readonly 'keep-devices'?: boolean
  readonly erase?: boolean
  readonly json?: boolean
  readonly file?: string
}

type Action = (of: { host: Host; api: Administration; user: string; values: Values; password: string }) => Promise<void>

/** The actions on one account. */
const ACTIONS: Readonly<Record<string, Action>> = {
  async show({ host, api, user }) {
    host.print(
      JSON.stringify(await api.call('GET', `/_synapse/admin/v2/users/${encodeURIComponent(user)}`), undefined, 2),
    )
  },
  async 'reset-password'({ host, api, user, values, password }) {
    const body = { new_password: password, logout_devices: !values['keep-devices'] }
    await api.call('POST', `/_synapse/admin/v1/reset_password/${encodeURIComponent(user)}`, body)
    host.print(`${user} has the new password${values['keep-devices'] ? '' : ', and is logged out everywhere'}.`)
  },
  async logout({ host, api, user }) {
    const path = `/_hearth/admin/v1/users/${encodeURIComponent(user)}/logout`
    const { devices } = await api.call('POST', path, {})
    host.print(`${user} is logged out: ${devices} devices.`)
  },
  async deactivate({ host, api, user, values }) {
    const path = `/_synapse/admin/v1/deactivate/${encodeURIComponent(user)}`
    await api.call('POST', path, { erase: values.erase ?? false })
    host.print(`${user} is deactivated${values.erase ? ', and what was kept of them is gone' : ''}.`)
  },
  async lock({ host, api, user }) {
    await restrain(api, 'lock', user, { locked: true })
    host.print(`${user} is locked: its sessions are refused until "user unlock".`)
  },
  async unlock({ host, api, user }) {
    await restrain(api, 'lock', user, { locked: false })
    host.print(`${user} is no longer locked, and goes on where it was.`)
  },
  async suspend({ host, api, user }) {
    await restrain(api, 'suspend', user, { suspended: true })
    host.print(`${user} is suspended: it can read, leave and log out, and write to nobody until "user release".`)
  },
  async release({ host, api, user }) {
    await restrain(api, 'suspend', user, { suspended: false })
    host.print(`${user} is no longer suspended.`)
  },
  async 'make-admin'({ host, api, user }) {
    await api.call('PUT', `/_synapse/admin/v1/users/${encodeURIComponent(user)}/admin`, { admin: true })
    host.print(`${user} may administer this server.`)
  },
  async 'remove-admin'({ host, api, user }) {
    await api.call('PUT', `/_synapse/admin/v1/users/${encodeURIComponent(user)}/admin`, { admin: false })
    host.print(`${user} may no longer administer this server.`)
  },
}

const restrain = (api: Administration, what: 'lock' | 'suspend', user: string, body: object): Promise<unknown> =>
  api.call('PUT', `/_matrix/client/v1/admin/${what}/${encodeURIComponent(user)}`, body)

export const userCommand: Command = {
  usage: `create NAME [--admin]
       user list [--name TEXT] [--admins] [--deactivated] [--json]
       user show | logout | make-admin | remove-admin NAME
       user lock | unlock | suspend | release NAME
       user reset-password NAME [--keep-devices]
       user deactivate NAME [--erase]
       user export NAME [--file FILE]
       all with [--config FILE] [--set KEY=VALUE]...

  NAME             alice, or @alice:example.org; of a new account the part before the colon
  --admin          the new account may administer this server
  --name           those with this in their name or display name
  --admins, --deactivated
                   only these
  --keep-devices   the user stays logged in
  --erase          profile, account data and filters are removed too; messages are shown empty to those who join later
  --file           where to write all that is kept of the user, as one archive: account, devices, account data, rooms, events,
                   files; without it NAME.tar.gz in this directory
  --json           for programs

A password is asked for, or read from standard input when that is not a terminal. The server may run meanwhile or not; what it
has in memory follows at once.`,

  async run(host, words) {
    const { values, positionals } = parseArgs({ args: [...words], options: OPTIONS, allowPositionals: true })
    const [action = '', name, ...rest] = positionals
    if (action === 'list' && name === undefined) return list(host, readConfig(host, values).config, values)
    const known = Object.hasOwn(ACTIONS, action) ? ACTIONS[action] : undefined
    if (known === undefined && action !== 'create' && action !== 'export')
      throw new UsageError('say "create NAME", "list" or another of these')
    if (name === undefined || rest.length > 0) throw new UsageError(`say "${action} NAME"`)
    const { config } = readConfig(host, values)
    if (action === 'export') {
      host.print(await exportUser(host, config, userNamed(name, config), values.file))
      return EXIT.ok
    }
    const password =
      action === 'create' || action === 'reset-password' ? await host.askSecret(`Password for ${name}: `) : ''
    if (known === undefined) {
      const userId = await makeUser(host, config, { username: name, password, isAdmin: values.admin ?? false })
      host.print(`${userId} can log in now.`)
    } else {
      await withAdministration(host, config, (api) =>
        known({ host, api, user: userNamed(name, config), values, password }),
      )
    }
    return EXIT.ok
  },
}

interface ListedUser {
  readonly name: string
  readonly displayname: string | null
  readonly creation_ts: number
  readonly last_seen_ts: number | null
  readonly admin: boolean
  readonly deactivated: boolean
  readonly is_guest: boolean
  readonly locked: boolean
  readonly suspended: boolean
}

async function list(host: Host, config: Config, values: Values): Promise<number> {
  const query = new URLSearchParams({
    limit: '1000',
    locked: 'true',
    ...(values.name === undefined ? {} : { name: values.name }),
    ...(values.admins ? { admins: 'true' } : {}),
    ...(values.deactivated ? { deactivated: 'true' } : {}),
  })
  const users = await withAdministration(host, config, async (api) => {
    const found: ListedUser[] = []
    for (let from: string | undefined = '0'; from !== undefined; ) {
      query.set('from', from)
      const page: { users: ListedUser[]; next_token?: string } = await api.call(
        'GET',
        `/_synapse/admin/v3/users?${query}`,
      )
      found.push(...page.users)
      from = page.next_token
    }
    return found
  })
  host.print(values.json ? JSON.stringify(users, undefined, 2) : table(users.map(rowOf)))
  return EXIT.ok
}

function rowOf(user: ListedUser): string[] {
  const marks = [
    user.admin && 'admin',
    user.is_guest && 'guest',
    user.locked && 'locked',
    user.suspended && 'suspended',
    user.deactivated && 'deactivated',
  ].filter(Boolean)
  return [user.name, user.displayname ?? '-', minute(user.creation_ts), minute(user.last_seen_ts), marks.join(' ')]
}
