import { ProtocolError } from '../../../src/core/errors.ts'
import type { Besieged } from '../../rooms/besieged.ts'
import type { Answer } from '../../rooms/people.ts'
import type { Json } from '../../support/api.ts'
import { readAnswer } from '../../support/sent-answer.ts'
import type { SyncClient } from './connection.ts'

/** A user of a server without HTTP, with a device: sliding syncs reach it all the same. */
export async function clientOf(home: Besieged, name: string): Promise<SyncClient> {
  const userId = home.user(name)
  const { userNid, deviceId } = await home.server.as(userId)
  await home.server.db.tx(async (tx) => {
    await tx.query('INSERT INTO account (user_nid, created_at) VALUES ($1, 0) ON CONFLICT DO NOTHING', [userNid])
    await tx.query('INSERT INTO device (user_nid, device_id, created_at) VALUES ($1, $2, 0) ON CONFLICT DO NOTHING', [
      userNid,
      deviceId,
    ])
  })
  return { userId, ask: (_, path, body) => answered(() => slide(home, name, path, body as Json)) }
}

async function slide(home: Besieged, name: string, path: string, body: Json): Promise<Json> {
  const { pathname, searchParams: query } = new URL(path, 'http://home.test')
  const isMerged = pathname.endsWith('/v4/sync')
  const circumstances = {
    pos: isMerged ? body.pos : (query.get('pos') ?? undefined),
    timeoutMs: Number((isMerged ? body.timeout : query.get('timeout')) ?? 0),
    presence: 'offline',
    signal: new AbortController().signal,
  } as const
  const { slidingRequests, slidingSync } = home.server.engine.services
  const request = isMerged ? slidingRequests.merged(body, circumstances) : slidingRequests.unstable(body, circumstances)
  const by = await home.server.as(home.user(name))
  return readAnswer(await home.inRun(async () => slidingSync.sync(by, request)))
}

async function answered(act: () => Promise<Json>): Promise<Answer> {
  try {
    return { status: 200, body: await act() }
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error
    return { status: error.status, body: { errcode: error.errcode, error: error.message } }
  }
}
