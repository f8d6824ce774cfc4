import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import type { UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import { setTokenEnd } from '../../store/accounts/tokens.ts'
import { type DeviceSighting, listDeviceSightings } from '../../store/accounts/user-survey.ts'
import type { Database } from '../../store/db/db.ts'
import type { Devices } from '../accounts/devices.ts'
import { type Issued, issueToken } from '../accounts/issue-token.ts'
import type { Sessions } from '../accounts/sessions.ts'
import type { Clock, Random } from '../clock.ts'
import { activeAccount, localAccount } from './local-account.ts'
import type { Operator } from './operator.ts'

/** The devices and sessions of accounts, for operators. Functions throw as those of `UserDesk`. */
export interface DeviceDesk {
  /**
   * Logs a new device of the user in, without an end or until a time. The user sees it among their devices. @throws ProtocolError
   * `M_FORBIDDEN` for the operator's own account, `M_USER_DEACTIVATED`
   */
  loginAs(by: Operator, userId: UserId, until: number | undefined): Promise<Issued>
  devices(userId: UserId): Promise<JsonObject[]>
  /** @throws ProtocolError `M_NOT_FOUND` */
  device(userId: UserId, deviceId: string): Promise<JsonObject>
  /** Makes a device that nobody is signed in on; nothing if it exists. @throws ProtocolError `M_INVALID_PARAM`, `M_USER_DEACTIVATED` */
  makeDevice(userId: UserId, deviceId: string): Promise<void>
  renameDevice(userId: UserId, deviceId: string, name: string | undefined): Promise<void>
  removeDevices(userId: UserId, deviceIds: readonly string[]): Promise<void>
  /** Ends all sessions and removes all devices. Returns how many. */
  logOut(userId: UserId): Promise<number>
  /** The devices of a user and their addresses (client-server API, `GET admin/whois`). */
  whois(userId: UserId): Promise<JsonObject>
  /** The same as administration tools read it: all connections, the newest first, under a device without a name. */
  connections(userId: UserId): Promise<JsonObject>
}

export interface DeviceDeskParts {
  readonly config: Pick<Config, 'server_name' | 'sessions'>
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly sessions: Sessions
  readonly devices: Devices
}

const OPERATOR_DEVICE = 'Administrator'

export function createDeviceDesk(deps: DeviceDeskParts): DeviceDesk {
  const { config, db, devices } = deps
  const account = (userId: UserId) => localAccount(db, userId, config.server_name)
  const active = (userId: UserId) => activeAccount(db, userId, config.server_name)

  async function sightings(userId: UserId): Promise<DeviceSighting[]> {
    const { user_nid } = await account(userId)
    // Sightings that are not written yet are only a hint, so a failed write does not matter.
    await deps.sessions.flush().catch(() => {})
    return listDeviceSightings(db, user_nid)
  }

  async function logOut(userId: UserId): Promise<number> {
    const { user_nid } = await account(userId)
    const before = await devices.list(user_nid)
    await devices.removeAll(user_nid)
    return before.length
  }

  return {
    logOut,
    async loginAs(by, userId, until) {
      const { user_nid } = await active(userId)
      if (by.requester?.userNid === user_nid) throw new ProtocolError('M_FORBIDDEN', 'This is your own account.')
      const loggedIn = await db.tx(async (tx) => {
        const issued = await issueToken(tx, deps, user_nid, { deviceId: undefined, displayName: OPERATOR_DEVICE })
        if (until !== undefined) await setTokenEnd(tx, user_nid, issued.deviceId, until)
        return issued
      })
      await devices.announce(user_nid, loggedIn)
      return loggedIn
    },
    devices: async (userId) => (await sightings(userId)).map((device) => deviceView(userId, device)),
    async device(userId, deviceId) {
      const device = (await sightings(userId)).find(({ device_id }) => device_id === deviceId)
      if (device === undefined) throw new ProtocolError('M_NOT_FOUND', `${userId} has no such device.`)
      return deviceView(userId, device)
    },
    async makeDevice(userId, deviceId) {
      await devices.make((await active(userId)).user_nid, deviceId, undefined)
    },
    async renameDevice(userId, deviceId, name) {
      await devices.rename((await account(userId)).user_nid, deviceId, name)
    },
    async removeDevices(userId, deviceIds) {
      await devices.remove((await account(userId)).user_nid, deviceIds)
    },
    async whois(userId) {
      const seen = await sightings(userId)
      return { user_id: userId, devices: Object.fromEntries(seen.map((one) => [one.device_id, sessionsOf([one])])) }
    },
    async connections(userId) {
      const seen = await sightings(userId)
      seen.sort((a, b) => (b.last_seen_at ?? 0) - (a.last_seen_at ?? 0))
      return { user_id: userId, devices: { '': sessionsOf(seen) } }
    },
  }
}

function deviceView(userId: UserId, { last_seen_at, ...device }: DeviceSighting): JsonObject {
  return { ...device, last_seen_ts: last_seen_at, user_id: userId }
}

function sessionsOf(sightings: readonly DeviceSighting[]): JsonObject {
  const seen = sightings.filter(({ last_seen_at }) => last_seen_at !== null)
  const connections = seen.map(({ last_seen_ip, last_seen_at, last_seen_user_agent }) => ({
    ip: last_seen_ip,
    last_seen: last_seen_at,
    user_agent: last_seen_user_agent,
  }))
  return { sessions: [{ connections }] }
}
