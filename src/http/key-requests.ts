import { ProtocolError } from '../core/errors.ts'
import { isUserId, type UserId } from '../core/ids.ts'
import { isObject, type JsonObject } from '../core/json.ts'

/** The `device_keys` of a query: users with their devices. */
export function readAskedKeys(deviceKeys: JsonObject): Map<UserId, string[]> {
  return new Map(
    Object.entries(deviceKeys).map(([userId, ids]) => {
      if (!isUserId(userId)) throw new ProtocolError('M_INVALID_PARAM', "'device_keys' names what is no user id.")
      // Clients of old write an empty object for "all".
      const isAll = ids === null || (isObject(ids) && Object.keys(ids).length === 0)
      const list = Array.isArray(ids) ? ids : isAll ? [] : [undefined]
      if (!list.every((id) => typeof id === 'string')) {
        throw new ProtocolError('M_BAD_JSON', "'device_keys' must hold lists of device ids.")
      }
      return [userId, list]
    }),
  )
}

/** The `one_time_keys` of a claim: users with devices with algorithms. */
export function readWantedKeys(wanted: JsonObject): Map<UserId, Map<string, string>> {
  return new Map(
    Object.entries(wanted).map(([userId, devices]) => {
      if (!isUserId(userId)) throw new ProtocolError('M_INVALID_PARAM', "'one_time_keys' names what is no user id.")
      const named = isObject(devices) ? Object.entries(devices) : [['', undefined] as const]
      for (const [deviceId, algorithm] of named) {
        const isText = typeof algorithm === 'string' && !algorithm.includes('\0') && !deviceId.includes('\0')
        if (!isText) throw new ProtocolError('M_BAD_JSON', "'one_time_keys' must name an algorithm for each device.")
      }
      return [userId, new Map(named as [string, string][])]
    }),
  )
}
