import { count } from '../format.ts'
import { type Text, t } from '../words.ts'

interface Effect<T> {
  readonly total: number
  readonly examples: readonly T[]
}

/** What following a list would do. */
export interface ListEffects {
  readonly state: string
  readonly warning?: string
  readonly rules: { readonly user: number; readonly room: number; readonly server: number }
  readonly accounts: Effect<string>
  readonly servers: Effect<string>
  readonly rooms: Effect<string>
  readonly bans: Effect<{ readonly user_id: string; readonly room_id: string }>
  readonly acls: number
  readonly is_whole: boolean
}

const EXAMPLES = 5

/** Says it before anything is done. */
export function Effects({ effects }: { readonly effects: ListEffects }) {
  const { rules, accounts, servers, rooms, bans, acls, warning } = effects
  const people = { ...bans, examples: bans.examples.map(({ user_id, room_id }) => `${user_id} · ${room_id}`) }
  const parts: readonly (readonly [Text, Effect<string>])[] = [
    ['Accounts of this server that it bans', accounts],
    ['Servers it bans, of those that are known here', servers],
    ['Rooms it bans, of those that are known here', rooms],
    ['People it puts out of guarded rooms, where the moderator may', people],
  ]
  return (
    <>
      <p>
        {t('Rules: {users} about users, {servers} about servers, {rooms} about rooms.', {
          users: count(rules.user),
          servers: count(rules.server),
          rooms: count(rules.room),
        })}
      </p>
      {warning !== undefined && (
        <p class="problem">
          <bdi>{warning}</bdi>
        </p>
      )}
      <p>{t('Besides what is banned already:')}</p>
      <ul>
        {parts.map(([title, { total, examples }]) => (
          <li key={title}>
            {t(title)}: <b>{count(total)}</b>
            {total > 0 && (
              <span class="soft block">
                {examples.slice(0, EXAMPLES).map((one) => (
                  <bdi key={one} class="block">
                    {one}
                  </bdi>
                ))}
                {total > EXAMPLES && t('and {count} more', { count: count(total - EXAMPLES) })}
              </span>
            )}
          </li>
        ))}
        <li>
          {t('Server ACLs of rooms that change')}: <b>{count(acls)}</b>
        </li>
      </ul>
      {!effects.is_whole && <p>{t('There was too much to look at everything: there is more of that.')}</p>}
    </>
  )
}
