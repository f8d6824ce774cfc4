import type { Config } from '../../config/schema.ts'
import type { ErasedOfPerson, KeptOfPerson } from '../../domain/identity/person-desk.ts'
import { userNamed, withAdministration } from '../administration.ts'
import { type Host, UsageError } from '../command.ts'
import { minute, table } from '../table.ts'

/** The length of the longest address and the longest user id. */
const MAX_CHARS = 255

/** The endpoint's path for a person. `@alice` is a user of this server; everything else must be complete. */
function pathOf(name: string, config: Config): string {
  if (name.length > MAX_CHARS) throw new UsageError('no address and no user id is that long')
  const full = /^@[^:@]+$/.test(name) ? userNamed(name, config) : name
  return `/_hearth/admin/v1/identity/people/${encodeURIComponent(full)}`
}

export async function showPerson(host: Host, config: Config, name: string, isJson: boolean): Promise<void> {
  const kept: KeptOfPerson = await withAdministration(host, config, (api) => api.call('GET', pathOf(name, config)))
  host.print(isJson ? JSON.stringify(kept, undefined, 2) : shown(kept))
}

export async function erasePerson(host: Host, config: Config, name: string): Promise<void> {
  const erased: ErasedOfPerson = await withAdministration(host, config, (api) =>
    api.call('DELETE', pathOf(name, config)),
  )
  host.print(`Of ${name} is gone:\n${removed(erased).join('\n')}`)
}

function shown({ account, bindings, sessions, invitations }: KeptOfPerson): string {
  const parts: string[][][] = [
    account === null
      ? []
      : [
          ['account since', 'tokens', 'last used', 'accepted'],
          [
            ...[minute(account.created_ts), String(account.tokens), minute(account.used_ts)],
            account.accepted.map(({ url }) => url).join(' ') || '-',
          ],
        ],
    [['bound address', 'to', 'since'], ...bindings.map((one) => [one.address, one.user_id, minute(one.bound_ts)])],
    [
      ['validation of', 'for', 'begun', 'validated', 'ends'],
      ...sessions.map((one) => [
        ...[one.address, one.realm, minute(one.created_ts), minute(one.validated_ts), minute(one.expires_ts)],
      ]),
    ],
    [
      ['invitation', 'of', 'by', 'to', 'state', 'made'],
      ...invitations.map((one) => [
        ...[String(one.id), one.address, one.sender, one.room_id, one.state, minute(one.created_ts)],
      ]),
    ],
  ]
  return parts
    .filter((rows) => rows.length > 1)
    .map(table)
    .join('\n\n')
}

const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`

function removed({ account, tokens, bindings, sessions, invitations }: ErasedOfPerson): string[] {
  return [
    ...bindings.map(({ address, user_id }) => `the binding of ${address} to ${user_id}`),
    ...(sessions === 0 ? [] : [counted(sessions, 'validation session')]),
    ...(invitations === 0 ? [] : [counted(invitations, 'invitation')]),
    ...(account ? [`the account, with ${counted(tokens, 'token')} and what it accepted`] : []),
  ].map((line) => `  ${line}`)
}
