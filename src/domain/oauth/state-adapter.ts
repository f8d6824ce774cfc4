import type { JsonObject } from '../../core/json.ts'
import type { Database, Tx } from '../../store/db/db.ts'
import {
  consumeState,
  countStates,
  decideState,
  deleteOldestStates,
  deleteState,
  deleteStatesOfGrant,
  findState,
  findStateByUserCode,
  putState,
  recordPoll,
  type StateRow,
} from '../../store/oauth/states.ts'
import type { Clock } from '../clock.ts'
import { DEVICE_POLL_SECONDS, MAX_AUTHORIZATION_BYTES, MAX_DEVICE_CODES, MAX_INTERACTIONS } from '../limits/oauth.ts'
import { oldestGiveWay } from '../oldest-give-way.ts'
import { hashToken } from '../opaque-tokens.ts'
import type { Clients } from './clients.ts'
import type { OauthSessions } from './oauth-sessions.ts'

/** How the authorisation server stores one kind of thing: the interface that oidc-provider asks for. Times are in seconds. */
export interface StateAdapter {
  upsert(id: string, payload: JsonObject, expiresIn: number): Promise<void>
  find(id: string): Promise<JsonObject | undefined>
  findByUserCode(userCode: string): Promise<JsonObject | undefined>
  findByUid(uid: string): Promise<JsonObject | undefined>
  consume(id: string): Promise<void>
  destroy(id: string): Promise<void>
  revokeByGrantId(grantId: string): Promise<void>
}

/** Errors that a client gets. */
export interface StateErrors {
  readonly full: () => Error
  readonly usedTwice: () => Error
  readonly slowDown: () => Error
  /** For this server itself. */
  readonly decided: () => Error
}

export interface StateDeps {
  readonly db: Database
  /** Writes that a crash may lose: people begin again. A session is committed after the use of its code, so no code works twice. */
  readonly writes: Tx
  readonly clock: Clock
  readonly clients: Pick<Clients, 'find'>
  readonly oauthSessions: Pick<OauthSessions, 'endGrant'>
  readonly errors: StateErrors
}

/** Makes the adapter of each kind. Ids are secrets, so only their hashes are stored. */
export function stateAdapters({
  db,
  writes,
  clock,
  clients,
  oauthSessions,
  errors,
}: StateDeps): (model: string) => StateAdapter {
  const roomFor = (model: string, most: number): (() => Promise<void>) =>
    oldestGiveWay(
      { db, clock },
      {
        most,
        count: (reader, limit) => countStates(reader, model, limit),
        deleteOldest: (tx, kept) => deleteOldestStates(tx, model, kept),
      },
    )
  /** What people and apps begin without a password is counted. */
  const makeRoom = new Map([
    ['Interaction', roomFor('Interaction', MAX_INTERACTIONS)],
    ['DeviceCode', roomFor('DeviceCode', MAX_DEVICE_CODES)],
  ])

  function payloadOf(row: StateRow | undefined): JsonObject | undefined {
    if (row === undefined || row.expires_at <= clock.now()) return undefined
    const payload = JSON.parse(row.payload) as JsonObject
    return row.consumed_at === null ? payload : { ...payload, consumed: Math.floor(row.consumed_at / 1000) }
  }

  async function endGrant(grantId: string): Promise<void> {
    const grantHash = hashToken(grantId)
    // First the grant: a session that is being made from it either fails, or is found below.
    await db.tx(async (tx) => {
      await deleteState(tx, { model: 'Grant', idHash: grantHash })
      await deleteStatesOfGrant(tx, grantHash)
    })
    await oauthSessions.endGrant(grantId)
  }

  function stored(model: string): StateAdapter {
    const keyOf = (id: string) => ({ model, idHash: hashToken(id) })
    return {
      async upsert(id, payload, expiresIn) {
        const text = JSON.stringify(payload)
        if (text.length > MAX_AUTHORIZATION_BYTES) throw errors.full()
        const { grantId, userCode } = payload
        const grantHash = typeof grantId === 'string' ? hashToken(grantId) : undefined
        if (model === 'DeviceCode' && userCode === undefined) {
          // Of two people who decide at once, the first counts.
          const decision = { payload: text, grantHash, now: clock.now() }
          if (!(await decideState(writes, keyOf(id), decision))) throw errors.decided()
          return
        }
        await makeRoom.get(model)?.()
        const state = {
          payload: text,
          grantHash,
          userCodeHash: typeof userCode === 'string' ? hashToken(userCode) : undefined,
          expiresAt: clock.now() + expiresIn * 1000,
        }
        await putState(writes, keyOf(id), state)
      },
      async find(id) {
        const payload = payloadOf(await findState(db, keyOf(id)))
        if (model !== 'DeviceCode' || payload === undefined) return payload
        // Only the device asks by this id. People have the code that they typed.
        const now = clock.now()
        const since = now - DEVICE_POLL_SECONDS * 1000
        if (!(await recordPoll(writes, keyOf(id), { now, since }))) throw errors.slowDown()
        return payload
      },
      findByUserCode: async (userCode) => payloadOf(await findStateByUserCode(db, hashToken(userCode))),
      findByUid: async () => undefined,
      async consume(id) {
        const key = keyOf(id)
        if (await consumeState(writes, key, clock.now())) return
        const { grantId } = payloadOf(await findState(db, key)) ?? {}
        if (typeof grantId === 'string') await endGrant(grantId)
        throw errors.usedTwice()
      },
      destroy: (id) => deleteState(writes, keyOf(id)),
      revokeByGrantId: async () => {},
    }
  }

  const registered: StateAdapter = {
    ...unstored,
    async find(id) {
      const client = await clients.find(id)
      return client && { ...(client.metadata as unknown as JsonObject), client_id: client.clientId }
    },
  }

  return (model) => {
    if (model === 'Client') return registered
    // Sessions of this server take the place of these, and people's browsers have sessions of their own.
    if (model === 'AccessToken' || model === 'Session') return unstored
    return model === 'RefreshToken' ? { ...unstored, revokeByGrantId: endGrant } : stored(model)
  }
}

const unstored: StateAdapter = {
  upsert: async () => {},
  find: async () => undefined,
  findByUserCode: async () => undefined,
  findByUid: async () => undefined,
  consume: async () => {},
  destroy: async () => {},
  revokeByGrantId: async () => {},
}
