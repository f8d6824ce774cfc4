import { hash } from 'node:crypto'
import type { Requester } from '../../accounts/requester.ts'
import { decodeStreamToken, encodeStreamToken, type StreamPosition } from '../token.ts'
import type { SlidingExtensions } from './request.ts'

/** A position of a connection: how far the client has read, and which record says what it was sent. */
export interface SlidingPosition {
  readonly stream: StreamPosition
  /** The version of the connection's record; 0 for one that was sent no room. */
  readonly version: number
  /** The extensions that were on: bits of `EXTENSION_BITS`. */
  readonly extensions: number
  /** Stands for the rooms that they were wanted for. */
  readonly scope: string
  /** The ledger position up to which the client heard of changed profiles; undefined where that is the stream's. */
  readonly profiles: number | undefined
}

/** Extensions that send everything when they are switched on. */
const EXTENSION_BITS = ['accountData', 'receipts', 'typing', 'threadSubscriptions', 'presence', 'profiles'] as const

export function extensionBits(extensions: SlidingExtensions): number {
  return EXTENSION_BITS.reduce((bits, name, index) => (extensions[name] ? bits | (1 << index) : bits), 0)
}

/** Whether an extension was on at a position. */
export function wasOn(position: SlidingPosition | undefined, name: (typeof EXTENSION_BITS)[number]): boolean {
  return position !== undefined && (position.extensions & (1 << EXTENSION_BITS.indexOf(name))) !== 0
}

/** A few characters that differ when an extension is wanted for other rooms. */
export function scopeOf({ accountData, receipts, typing, profiles }: SlidingExtensions): string {
  const scopes = [accountData, receipts, typing].map((scope) => (scope ? [scope.lists ?? 0, scope.rooms ?? 0] : 0))
  const all = profiles ? [...scopes, [profiles.lists ?? 0, profiles.rooms ?? 0, profiles.fields ?? 0]] : scopes
  return digest(JSON.stringify(all)).slice(0, 6)
}

/** Names the connection in its positions, so that none is taken for that of another. It is no secret. */
export function connectionTag({ userNid, deviceId }: Pick<Requester, 'userNid' | 'deviceId'>, connId: string): string {
  return digest(`${userNid}\n${deviceId}\n${connId}`).slice(0, 10)
}

const digest = (text: string): string => hash('sha256', text, 'hex')

/**
 * A stream token, then `~`, the tag, the version, the extensions and their scope, and the position for profiles if that is behind. It is a token of a room's timeline too. It acknowledges no
 * messages to the device, which have a token of their own.
 */
export function encodePos({ stream, version, extensions, scope, profiles }: SlidingPosition, tag: string): string {
  const rest = profiles === undefined ? '' : `.${profiles}`
  return `${encodeStreamToken({ ...stream, toDevice: 0 })}~${tag}.${version}.${extensions}.${scope}${rest}`
}

const POS = /^([^~]{1,100})~([0-9a-f]{10})\.(\d{1,15})\.(\d{1,3})\.([0-9a-f]{6})(?:\.(\d{1,16}))?$/

/** The position, or undefined for a text that this connection was never given. */
export function decodePos(pos: string, tag: string): SlidingPosition | undefined {
  const [, token = '', given, version, extensions, scope = '', profiles] = POS.exec(pos) ?? []
  const stream = decodeStreamToken(token)
  if (stream === undefined || given !== tag) return undefined
  const known = { stream, version: Number(version), extensions: Number(extensions), scope }
  return { ...known, profiles: profiles === undefined ? undefined : Number(profiles) }
}
