declare const brand: unique symbol
type Branded<Name extends string> = string & { readonly [brand]: Name }

/** `@localpart:server.name` */
export type UserId = Branded<'UserId'>
/** `!opaque:server.name`, from room version 12 on `!hash` */
export type RoomId = Branded<'RoomId'>
/** `$opaque:server.name` in room versions 1 and 2, `$hash` after */
export type EventId = Branded<'EventId'>
/** `#localpart:server.name` */
export type RoomAlias = Branded<'RoomAlias'>
/** A host name or IP literal with an optional port. */
export type ServerName = Branded<'ServerName'>

/** No identifier may be longer than this many UTF-8 bytes, its sigil and server name included (appendices, "Common identifier format"). */
export const MAX_ID_BYTES = 255

const PORT = /^[0-9]{1,5}$/
const IPV4 = /^(?:[0-9]{1,3}\.){3}[0-9]{1,3}$/
const IPV6 = /^\[[0-9A-Fa-f:.]{2,45}\]$/
const DNS_NAME = /^[0-9A-Za-z.-]{1,230}$/

/** Splits `host[:port]` by the server-name grammar (appendices, "Server name"); undefined when it does not fit. */
export function splitServerName(name: string): { host: string; port: number | undefined } | undefined {
  const close = name.startsWith('[') ? name.indexOf(']') : -1
  const colon = name.indexOf(':', close + 1)
  const host = colon === -1 ? name : name.slice(0, colon)
  const portText = colon === -1 ? undefined : name.slice(colon + 1)
  if (portText !== undefined && (!PORT.test(portText) || Number(portText) > 65535)) return undefined
  if (!IPV6.test(host) && !IPV4.test(host) && !DNS_NAME.test(host)) return undefined
  return { host, port: portText === undefined ? undefined : Number(portText) }
}

export function isServerName(value: string): value is ServerName {
  return splitServerName(value) !== undefined
}

/** The server part of an identifier: everything after its first colon. Undefined if it has none (room ids from version 12 on). */
export function serverOf(id: UserId | RoomAlias): ServerName
export function serverOf(id: string): ServerName | undefined
export function serverOf(id: string): ServerName | undefined {
  const colon = id.indexOf(':')
  return colon === -1 ? undefined : (id.slice(colon + 1) as ServerName)
}

/** The part between the sigil and the first colon. */
export function localpartOf(id: string): string {
  const colon = id.indexOf(':')
  return id.slice(1, colon === -1 ? undefined : colon)
}

function fits(value: string): boolean {
  return value.length <= MAX_ID_BYTES && Buffer.byteLength(value) <= MAX_ID_BYTES && !value.includes('\0')
}

function isScoped(value: string, sigil: string): boolean {
  if (value[0] !== sigil || !fits(value)) return false
  const server = serverOf(value)
  return server !== undefined && isServerName(server)
}

/** A user id in the historical grammar: any localpart, so that ids made by old servers are accepted from remote events. */
export function isUserId(value: unknown): value is UserId {
  return typeof value === 'string' && isScoped(value, '@')
}

/** The characters of a new user's localpart (appendices, "User identifiers"). */
const NEW_LOCALPART = /^[a-z0-9._=/+-]+$/

/** Whether a user of this server may be created with this localpart. */
export function isNewLocalpart(localpart: string, server: ServerName): boolean {
  return NEW_LOCALPART.test(localpart) && fits(`@${localpart}:${server}`)
}

export function userId(localpart: string, server: ServerName): UserId {
  return `@${localpart}:${server}` as UserId
}

/** `!anything:server` or the domainless form of room version 12. */
export function isRoomId(value: unknown): value is RoomId {
  if (typeof value !== 'string' || value[0] !== '!' || value.length < 2 || !fits(value)) return false
  const server = serverOf(value)
  return server === undefined || isServerName(server)
}

export function isEventId(value: unknown): value is EventId {
  return typeof value === 'string' && value[0] === '$' && value.length > 1 && fits(value)
}

export function isRoomAlias(value: unknown): value is RoomAlias {
  return typeof value === 'string' && value.length > 2 && isScoped(value, '#')
}
