import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import { type BanRule, type Bans, compileBans, type PolicyEntity } from '../../core/event/policy-rules.ts'
import { type RoomId, serverOf, type UserId, userId } from '../../core/ids.ts'
import { findAccount, listAdministrators } from '../../store/accounts/accounts.ts'
import type { Database } from '../../store/db/db.ts'
import { listKnownServers } from '../../store/federation/known-servers.ts'
import { type Present, presentWith } from '../../store/rooms/list-bans.ts'
import { accountsAfter, type Numbered, roomsAfter } from '../../store/rooms/list-previews.ts'
import { LIST_PREVIEW_MS, LIST_PREVIEW_SHOWN, POLICY_GLOB_BOUNDS } from '../limits/moderation.ts'
import type { ListAcls } from './list-acls.ts'
import { type PolicyLists, serversOf } from './policy-lists.ts'

/** How many there are, and the first of them. */
export interface Effect<T> {
  readonly total: number
  readonly examples: readonly T[]
}

/** What following a list would do that the lists in force do not do already. A list that would be held does nothing. */
export interface ListEffects {
  readonly room_id: RoomId
  readonly state: string
  readonly warning?: string
  /** Rules that ban, by what they are about. */
  readonly rules: Readonly<Record<PolicyEntity, number>>
  /** Accounts of this server that could join and invite no more. */
  readonly accounts: Effect<UserId>
  /** Servers, of those that are known here. */
  readonly servers: Effect<string>
  /** Rooms, of those that are known here, into which nobody would come any more. */
  readonly rooms: Effect<RoomId>
  /** People in rooms of the user of `moderation.ban_as`, who would be banned where that user may. */
  readonly bans: Effect<{ readonly user_id: UserId; readonly room_id: RoomId }>
  /** Rooms whose server ACL would change. */
  readonly acls: number
  /** False if there was too much to look at everything: there is more of all that. */
  readonly is_whole: boolean
}

export interface ListPreview {
  /** @throws ProtocolError `M_NOT_FOUND` for a room of which nothing is known */
  of(roomId: RoomId): Promise<ListEffects>
}

const READ_AT_ONCE = 1_000
const LONGEST_TURN_MS = 10
const ADMINISTRATORS = 1_000

export function createListPreview(parts: {
  readonly config: Pick<Config, 'server_name' | 'moderation'>
  readonly db: Database
  readonly lists: Pick<PolicyLists, 'bans' | 'look'>
  readonly acls: Pick<ListAcls, 'concerned'> | undefined
}): ListPreview {
  const { config, db, lists, acls } = parts
  const { server_name: own } = config

  /** Looks at what is read page by page, until time is over. Other requests have their turn in between. */
  function createCount() {
    const until = performance.now() + LIST_PREVIEW_MS
    let turnBegun = performance.now()
    const isOver = () => performance.now() > until

    async function count<Row, Shown>(
      read: (last: Row | undefined) => Promise<readonly Row[]>,
      shownIf: (row: Row) => Shown | undefined,
    ): Promise<Effect<Shown>> {
      const examples: Shown[] = []
      let total = 0
      for (let page = await read(undefined); page.length > 0; page = await read(page.at(-1))) {
        for (const row of page) {
          const shown = shownIf(row)
          if (shown !== undefined && ++total <= LIST_PREVIEW_SHOWN) examples.push(shown)
          if (performance.now() - turnBegun < LONGEST_TURN_MS) continue
          await nextTurn()
          turnBegun = performance.now()
          if (isOver()) return { total, examples }
        }
      }
      return { total, examples }
    }
    return { count, isOver }
  }

  /** Whether rules ban what the lists in force do not. */
  function isNewIn(rules: readonly BanRule[]): (entity: PolicyEntity, text: string) => boolean {
    const bans: Bans = compileBans(rules, POLICY_GLOB_BOUNDS)
    return (entity, text) => bans.of(entity, text) !== undefined && lists.bans()?.of(entity, text) === undefined
  }

  async function moderatorNid(): Promise<number | undefined> {
    const { ban_as: localpart } = config.moderation
    return localpart === undefined ? undefined : (await findAccount(db, userId(localpart, own)))?.user_nid
  }

  return {
    async of(roomId) {
      const { state, warning, rules: all } = await lists.look(roomId)
      if (state === 'unknown')
        throw new ProtocolError('M_NOT_FOUND', 'Nobody of this server is in that room: join it first.')
      const rules = state === 'in force' ? all : []
      const isNew = isNewIn(rules)
      const { count, isOver } = createCount()
      const reader = db.bulk
      const administrators = new Set(await listAdministrators({ query: db.scan }, ADMINISTRATORS))
      const banner = await moderatorNid()
      const numbered =
        <Id>(page: typeof accountsAfter | typeof roomsAfter) =>
        (last: Numbered<Id> | undefined) =>
          page(reader, last?.nid ?? 0, READ_AT_ONCE) as Promise<Numbered<Id>[]>
      const known = await listKnownServers({ query: db.scan }, own)
      const servers = await count(
        async (last: string | undefined) => (last === undefined ? known : []),
        (server) => (isNew('server', server) ? server : undefined),
      )
      const rooms = await count(numbered<RoomId>(roomsAfter), ({ id }) => (isNew('room', id) ? id : undefined))
      const accounts = await count(numbered<UserId>(accountsAfter), ({ id }) => (isNew('user', id) ? id : undefined))
      const bans = await count(
        async (last: Present | undefined) =>
          banner === undefined ? [] : presentWith(reader, banner, last ?? { room_nid: 0, user_nid: 0 }, READ_AT_ONCE),
        ({ user_id, room_id, user_nid }) => {
          if (user_nid === banner || administrators.has(user_id)) return undefined
          const server = serverOf(user_id)
          return isNew('user', user_id) || (server !== own && isNew('server', server))
            ? { user_id, room_id }
            : undefined
        },
      )
      const ofEntity = (wanted: PolicyEntity) => all.filter(({ entity }) => entity === wanted).length
      return {
        room_id: roomId,
        state,
        ...(warning !== undefined && { warning }),
        rules: { user: ofEntity('user'), room: ofEntity('room'), server: ofEntity('server') },
        accounts,
        servers,
        rooms,
        bans,
        acls: (await acls?.concerned(serversOf(rules), isOver)) ?? 0,
        is_whole: !isOver(),
      }
    },
  }
}
