import { json } from 'node:stream/consumers'
import type { SentAnswer } from '../../src/domain/sync/sent-answers.ts'
import type { Json } from './api.ts'

/** What a sync answered, also where it is made while it is read. */
export async function readAnswer({ body, closed }: SentAnswer): Promise<Json> {
  try {
    return typeof body === 'string' || Buffer.isBuffer(body) ? JSON.parse(body.toString()) : await json(body)
  } finally {
    closed?.()
  }
}
