import { createBoundedMap } from '../../../core/cache.ts'
import { ProtocolError } from '../../../core/errors.ts'
import type { ConnectionKey } from '../../../store/accounts/sliding-connections.ts'
import type { Requester } from '../../accounts/requester.ts'
import type { Restores } from '../../restores.ts'
import { epochOf, type StreamPosition } from '../token.ts'
import type { Connections } from './connections.ts'
import { connectionTag, decodePos, type SlidingPosition } from './position.ts'
import type { SlidingRecord } from './record.ts'
import type { SlidingRequest } from './request.ts'

/** One request on its way. */
export interface Turn {
  readonly by: Requester
  readonly request: SlidingRequest
  readonly connection: ConnectionKey
  readonly name: string
  readonly tag: string
  readonly from: SlidingPosition | undefined
  readonly record: SlidingRecord
}

/** Stands for a connection among all. */
export function connectionName({ userNid, deviceId }: Requester, connId: string): string {
  return `${userNid} ${deviceId} ${connId}`
}

const MAX_TAGS = 20_000

/** Finds out where a request continues. @throws ProtocolError `M_UNKNOWN_POS`, `M_FORBIDDEN`, as `SlidingSync` says */
export function createTurns(parts: {
  readonly connections: Connections
  readonly restores: Restores
  now(): StreamPosition
}): (by: Requester, request: SlidingRequest) => Promise<Turn> {
  const { connections } = parts
  const tags = createBoundedMap<string, string>(MAX_TAGS)

  async function turnOf(by: Requester, request: SlidingRequest): Promise<Turn> {
    const { pos } = request
    const { connId } = request.asked
    if (by.deviceId === '')
      throw new ProtocolError('M_FORBIDDEN', 'Sliding sync is for devices. Name one with `device_id`.')
    const connection = { userNid: by.userNid, deviceId: by.deviceId, connId }
    const name = connectionName(by, connId)
    const tag = tags.get(name) ?? connectionTag(by, connId)
    tags.set(name, tag)
    if (pos === undefined) return { by, request, connection, name, tag, from: undefined, record: connections.begin() }
    const decoded = decodePos(pos, tag)
    // What the client has from after the backup that the database was restored from is not so any more.
    const isLost = decoded && parts.restores.lostAfter(decoded.stream, epochOf(decoded.stream)) !== undefined
    const read = isLost ? undefined : decoded
    const reading = read && connections.at(connection, read.version)
    const record = reading instanceof Promise ? await reading : reading
    if (read === undefined || record === undefined) {
      const error = 'This connection does not go on from that `pos`. Send the request again without `pos`.'
      throw new ProtocolError('M_UNKNOWN_POS', error)
    }
    const { version, extensions, scope, profiles } = read
    const from = { stream: current(read.stream), version, extensions, scope, profiles }
    return { by, request, connection, name, tag, from, record }
  }

  /** A position of an earlier run says nothing about what is in memory now. Messages to the device have a token of their own. */
  function current({ events, ledger, ephemeral, run: given }: StreamPosition): StreamPosition {
    const { run } = parts.now()
    return { events, ledger, toDevice: ledger, ephemeral: given === run ? ephemeral : 0, run }
  }

  return turnOf
}
