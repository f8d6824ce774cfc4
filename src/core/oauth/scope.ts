/** Scopes of access tokens (client-server API, "Scope"): one for the whole API, and one that names the device. */

/** The prefix of both scopes, as published and as older clients spell it. */
const SPELLINGS = ['urn:matrix:client:', 'urn:matrix:org.matrix.msc2967.client:'] as const

/** RFC 6749, appendix A.4. */
const DEVICE_ID = /^[\x21\x23-\x5b\x5d-\x7e]{1,255}$/

export interface ReadScope {
  /** The scopes to grant, in the spelling of the request. Others are left out (RFC 6749, section 3.3). */
  readonly granted: string
  readonly deviceId: string
}

/** Why a scope cannot be granted, in words for developers. */
export interface ScopeProblem {
  readonly problem: string
}

/** Reads the `scope` of a request: space-separated tokens. */
export function readScope(scope: string): ReadScope | ScopeProblem {
  const tokens = [...new Set(scope.split(' '))]
  const ours = tokens.filter((token) => SPELLINGS.some((prefix) => token.startsWith(prefix)))
  const devices = ours.filter((token) => SPELLINGS.some((prefix) => token.startsWith(`${prefix}device:`)))
  const [device] = devices
  if (device === undefined) return { problem: 'The scope must name a device: urn:matrix:client:device:<id>' }
  if (devices.length > 1) return { problem: 'The scope must name one device only' }
  const prefix = SPELLINGS.find((each) => device.startsWith(each)) ?? SPELLINGS[0]
  const api = `${prefix}api:*`
  if (!ours.includes(api)) return { problem: `The scope must hold ${api}, in the same spelling as the device` }
  if (ours.length > 2) return { problem: `Of these scopes there are ${api} and one device only` }
  const deviceId = device.slice(`${prefix}device:`.length)
  if (!DEVICE_ID.test(deviceId)) return { problem: 'The device id must have 1 to 255 characters that a scope may hold' }
  return { granted: `${api} ${device}`, deviceId }
}
