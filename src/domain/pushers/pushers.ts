import { ProtocolError } from '../../core/errors.ts'
import { isObject, type JsonObject } from '../../core/json.ts'
import { parseExact, writeJson } from '../../core/large-integers.ts'
import { normaliseAddress } from '../../core/threepid.ts'
import { deletePusher, getPushersOf, type PusherRow, putPusher, takePushkey } from '../../store/accounts/pushers.ts'
import { findThreepidOwner } from '../../store/accounts/user-threepids.ts'
import type { Database } from '../../store/db/db.ts'
import type { Requester } from '../accounts/requester.ts'
import type { Clock } from '../clock.ts'
import { MAX_PUSHERS_PER_USER } from '../limits/pushers.ts'
import { checkPusherKeys, checkPusherWish, MAIL_APP_ID, type PusherBody } from './pusher-wish.ts'

/** The pushers of users (client-server API, "Push Notifications"). */
export interface Pushers {
  /** A user's pushers, as the user sees them. */
  list(userNid: number): Promise<JsonObject[]>
  /**
   * Sets a pusher, or deletes it if `kind` is null.
   * @throws ProtocolError `M_MISSING_PARAM`, `M_INVALID_PARAM`, `M_THREEPID_NOT_FOUND` for an address that is not the account's,
   * `M_FORBIDDEN` for too many pushers
   */
  set(by: Pick<Requester, 'userNid' | 'deviceId'>, body: PusherBody): Promise<void>
  /** Removes a pusher. */
  remove(userNid: number, appId: string, pushkey: string): Promise<void>
  /** A pusher of this user was removed elsewhere. */
  removed(userNid: number): void
  /** Calls the listener after pushers of a user were set or removed. Those that go with their session are not told. */
  onChange(listener: (userNid: number) => void): void
}

export function createPushers(deps: {
  readonly db: Database
  readonly clock: Clock
  /** The newest position of the event stream. */
  position(): number
}): Pushers {
  const { db, clock, position } = deps
  const listeners: ((userNid: number) => void)[] = []

  function changed(userNids: Iterable<number>): void {
    for (const userNid of new Set(userNids)) for (const listener of listeners) listener(userNid)
  }

  /** The address as it is bound to the user's account. */
  async function ownAddress(userNid: number, address: string): Promise<string> {
    const normal = normaliseAddress('email', address)
    const owner = await findThreepidOwner(db, 'email', normal)
    if (owner?.user_nid !== userNid) {
      throw new ProtocolError('M_THREEPID_NOT_FOUND', 'Add this email address to your account first.')
    }
    return normal
  }

  async function remove(userNid: number, appId: string, pushkey: string): Promise<void> {
    await db.tx((tx) => deletePusher(tx, userNid, appId, pushkey))
    changed([userNid])
  }

  return {
    remove,
    removed: (userNid) => changed([userNid]),
    list: async (userNid) => (await getPushersOf(db, userNid)).map(shownPusher),
    async set({ userNid, deviceId }, body) {
      checkPusherKeys(body)
      const { app_id, append = false } = body
      if (body.kind === null) {
        return remove(userNid, app_id, app_id === MAIL_APP_ID ? normaliseAddress('email', body.pushkey) : body.pushkey)
      }
      const { data, ...wish } = checkPusherWish(body)
      const pushkey = wish.kind === 'email' ? await ownAddress(userNid, body.pushkey) : body.pushkey
      const row = {
        ...wish,
        ...{ user_nid: userNid, app_id, pushkey, device_id: deviceId === '' ? null : deviceId },
        ...{ data: writeJson(data), set_at: clock.now() },
      }
      const others = await db.tx(async (tx) => {
        if (!(await putPusher(tx, row, position(), MAX_PUSHERS_PER_USER))) {
          throw new ProtocolError(
            'M_FORBIDDEN',
            `An account may have ${MAX_PUSHERS_PER_USER} pushers. Delete one first.`,
          )
        }
        return append ? [] : takePushkey(tx, userNid, app_id, pushkey)
      })
      changed([userNid, ...others])
    },
    onChange: (listener) => void listeners.push(listener),
  }
}

/** A pusher as `GET C/pushers` shows it. */
export function shownPusher(row: PusherRow): JsonObject {
  return {
    pushkey: row.pushkey,
    kind: row.kind,
    app_id: row.app_id,
    app_display_name: row.app_display_name,
    device_display_name: row.device_display_name,
    ...(row.profile_tag !== null && { profile_tag: row.profile_tag }),
    lang: row.lang,
    data: dataOf(row),
    // Mobile clients of today read these (MSC3881).
    'org.matrix.msc3881.enabled': row.is_enabled,
    'org.matrix.msc3881.device_id': row.device_id,
  }
}

/** The `data` of a pusher. */
export function dataOf({ data }: Pick<PusherRow, 'data'>): JsonObject {
  const read = parseExact(data)
  return isObject(read) ? read : {}
}
