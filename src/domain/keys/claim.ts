import { ProtocolError } from '../../core/errors.ts'
import { type ServerName, serverOf, type UserId } from '../../core/ids.ts'
import { isObject, type JsonObject } from '../../core/json.ts'
import { readOneTimeKey } from '../../core/keys/one-time-keys.ts'
import type { Reader } from '../../store/db/db.ts'
import type { Ledger } from '../../store/db/ledger.ts'
import { findLocalUsers } from '../../store/keys/device-keys.ts'
import { type KeyWish, type TakenKey, takeOneTimeKeys, useFallbackKeys } from '../../store/keys/one-time-keys.ts'
import type { Requester } from '../accounts/requester.ts'
import type { ServiceDeviceNews } from '../appservices/news.ts'
import type { Clock } from '../clock.ts'
import type { FanOut } from '../fan-out.ts'
import { MAX_KEYS_PER_CLAIM } from '../limits.ts'
import type { DeviceKeyCounts } from './key-counts.ts'
import { failuresOf, type RemoteKeys } from './remote-keys.ts'

/** User to device to algorithm. */
export type WantedKeys = ReadonlyMap<UserId, ReadonlyMap<string, string>>

/** User to device to the one key, as `{"<algorithm>:<key id>": key}`. */
export type ClaimedKeys = ReadonlyMap<UserId, ReadonlyMap<string, string>>

export interface KeyClaims {
  /**
   * Claims one key of each device: the one-time key that was uploaded first, or the fallback key if none is left. No one-time key is ever
   * given out twice. Values are JSON (client-server API, `POST keys/claim`).
   *
   * @param timeoutMs how long other servers may take
   * @throws ProtocolError `M_TOO_LARGE`
   */
  claim(by: Requester, wanted: WantedKeys, timeoutMs: number): Promise<{ keys: ClaimedKeys; failures: JsonObject }>
  /** The same for local users alone, on behalf of another server. Remote users are ignored. @throws as `claim` */
  claimLocal(wanted: WantedKeys): Promise<ClaimedKeys>
}

/** Claims in one statement. */
const WISHES_AT_ONCE = 500

export function createKeyClaims(deps: {
  readonly serverName: ServerName
  readonly db: Reader
  readonly ledger: Ledger
  readonly clock: Clock
  readonly counts: DeviceKeyCounts
  readonly remote: RemoteKeys
  readonly fanOut: FanOut
  readonly services: Pick<ServiceDeviceNews, 'ownersOf' | 'keysClaimed' | 'queued'>
}): KeyClaims {
  const { serverName, db, ledger, clock, counts, remote, fanOut, services } = deps

  /** It is committed before this resolves: a key that somebody may have got is gone, even after a crash. */
  async function take(wishes: readonly KeyWish[], userIds: ReadonlyMap<number, UserId>): Promise<readonly TakenKey[]> {
    const owners = services.ownersOf(new Set(wishes.map(({ userNid }) => userIds.get(userNid)!)))
    let fallen: readonly TakenKey[] = []
    const given = await ledger.append(
      async (tx) => {
        const taken = await takeOneTimeKeys(tx, wishes, clock.now())
        const served = new Set(taken.map(deviceNameOf))
        const unmet = wishes.filter(({ userNid, deviceId }) => !served.has(`${userNid} ${deviceId}`))
        const fallback = unmet.length === 0 ? [] : await useFallbackKeys(tx, unmet)
        fallen = [...taken, ...fallback.filter(({ was_used }) => !was_used)]
        if (owners.length > 0 && fallen.length > 0) {
          const devices = fallen.map((key) => ({ userId: userIds.get(key.user_nid)!, deviceId: key.device_id }))
          await services.keysClaimed(tx, devices)
        }
        return [...taken, ...fallback]
      },
      (_, position) => {
        for (const { user_nid, device_id } of fallen) counts.fell({ userNid: user_nid, deviceId: device_id }, position)
      },
    )
    services.queued(owners)
    return given
  }

  const claimLocal: KeyClaims['claimLocal'] = async (wanted) => {
    if ([...wanted.values()].reduce((sum, devices) => sum + devices.size, 0) > MAX_KEYS_PER_CLAIM) {
      const error = `At most ${MAX_KEYS_PER_CLAIM} keys can be claimed at once.`
      throw new ProtocolError('M_TOO_LARGE', error, { status: 400 })
    }
    const users = await findLocalUsers(
      db,
      [...wanted.keys()].filter((userId) => serverOf(userId) === serverName),
    )
    const userIds = new Map([...users].map(([userId, userNid]) => [userNid, userId]))
    const wishes = [...users].flatMap(([userId, userNid]) =>
      [...wanted.get(userId)!].map(([deviceId, algorithm]) => ({ userNid, deviceId, algorithm })),
    )
    const claimed = new Map<UserId, Map<string, string>>()
    for (let start = 0; start < wishes.length; start += WISHES_AT_ONCE) {
      for (const key of await take(wishes.slice(start, start + WISHES_AT_ONCE), userIds)) {
        put(claimed, userIds.get(key.user_nid)!, key.device_id, `${key.algorithm}:${key.key_id}`, key.json)
      }
    }
    return claimed
  }

  return {
    claimLocal,
    async claim(by, wanted, timeoutMs) {
      const keys = new Map(await claimLocal(wanted))
      const others = byServer(wanted, serverName)
      const admitted = await fanOut.admit(
        by,
        [...others.values()].flatMap((users) => [...users.keys()]),
      )
      const answers = await fanOut.ask(by, admitted, timeoutMs, async (server, leftMs) => {
        const some = others.get(server)!
        const body = Object.fromEntries([...some].map(([userId, devices]) => [userId, Object.fromEntries(devices)]))
        return readRemote(some, await remote.claim(server, body, leftMs))
      })
      for (const answer of answers.values()) for (const [userId, devices] of answer) keys.set(userId, devices)
      return { keys, failures: failuresOf(others.keys(), admitted, answers) }
    },
  }
}

function deviceNameOf({ user_nid, device_id }: TakenKey): string {
  return `${user_nid} ${device_id}`
}

function put(
  keys: Map<UserId, Map<string, string>>,
  userId: UserId,
  deviceId: string,
  name: string,
  json: string,
): void {
  const devices = keys.get(userId) ?? new Map<string, string>()
  keys.set(userId, devices.set(deviceId, `{${JSON.stringify(name)}:${json}}`))
}

function byServer(wanted: WantedKeys, own: ServerName): Map<ServerName, Map<UserId, ReadonlyMap<string, string>>> {
  const servers = new Map<ServerName, Map<UserId, ReadonlyMap<string, string>>>()
  for (const [userId, devices] of wanted) {
    const server = serverOf(userId)
    if (server === own) continue
    const users = servers.get(server) ?? new Map()
    servers.set(server, users.set(userId, devices))
  }
  return servers
}

/** The well-formed part of another server's answer that was asked for. */
function readRemote(wanted: WantedKeys, answer: JsonObject): Map<UserId, Map<string, string>> {
  const keys = new Map<UserId, Map<string, string>>()
  const users = isObject(answer.one_time_keys) ? answer.one_time_keys : {}
  for (const [userId, devices] of wanted) {
    const given = Object.hasOwn(users, userId) ? users[userId] : undefined
    for (const deviceId of isObject(given) ? devices.keys() : []) {
      const named = Object.hasOwn(given as JsonObject, deviceId) ? (given as JsonObject)[deviceId] : undefined
      const [[name, value] = []] = isObject(named) ? Object.entries(named) : []
      if (name === undefined || value === undefined) continue
      try {
        const { json } = readOneTimeKey(name, value, userId)
        put(keys, userId, deviceId, name, json)
      } catch {
        // The device counts as having no key.
      }
    }
  }
  return keys
}
