import type { RendezvousContent } from '../../../domain/rendezvous/rendezvous.ts'
import { type RawReply, rawReply } from '../../../http/endpoint.ts'

/** An answer about a session, which nothing on the way may keep. */
export function sessionReply(body: object): RawReply {
  return rawReply({ headers: { 'cache-control': 'no-store', pragma: 'no-cache' }, body: JSON.stringify(body) })
}

export const expiresIn = ({ expiresAt }: RendezvousContent, now: number): number => Math.max(0, expiresAt - now)
