import { compileServerAcl } from '../acl.ts'
import { compileGlobs } from '../glob.ts'
import { splitServerName } from '../ids.ts'
import type { JsonObject } from '../json.ts'

/** The next content of `m.room.server_acl`, and which of its globs are there because of lists. */
export interface AclPlan {
  readonly content: JsonObject
  readonly added: readonly string[]
}

const OPEN: JsonObject = { allow: ['*'], allow_ip_literals: true, deny: [] }

/**
 * What a room's ACL has to be so that it denies what lists ban, and lets in again what they ban no more. Undefined if it may stay, which is
 * also so where it cannot be read, and where it keeps this server out already: that is for people to decide.
 *
 * @param content the ACL of now; undefined where there is none
 * @param wanted globs of servers, the most important first; one that matches this server is left out
 * @param earlier those that lists added before; all others are people's, and stay
 * @param maxBytes of the content's JSON; what does not fit is left out
 */
export function planAcl(
  content: JsonObject | undefined,
  wanted: readonly string[],
  earlier: readonly string[],
  { own, maxBytes }: { readonly own: string; readonly maxBytes: number },
): AclPlan | undefined {
  const before = content ?? OPEN
  const { deny = [] } = before
  if (!Array.isArray(deny) || !Array.isArray(before.allow) || !compileServerAcl(before).allows(own)) return undefined
  const ours = new Set(earlier)
  const kept = deny.filter((glob) => typeof glob !== 'string' || !ours.has(glob))
  const there = new Set(kept)
  const host = splitServerName(own)?.host ?? own
  const added: string[] = []
  let bytes = Buffer.byteLength(JSON.stringify({ ...before, deny: kept }))
  for (const glob of new Set(wanted)) {
    if (there.has(glob) || compileGlobs([glob])(host)) continue
    bytes += Buffer.byteLength(JSON.stringify(glob)) + 1
    if (bytes > maxBytes) break
    added.push(glob)
  }
  const now = new Set(deny)
  const isSame = now.size === kept.length + added.length && [...kept, ...added].every((glob) => now.has(glob))
  return isSame ? undefined : { content: { ...before, deny: [...kept, ...added] }, added }
}
