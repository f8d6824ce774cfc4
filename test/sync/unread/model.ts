import type { UnreadCounts } from '../../../src/domain/sync/unread.ts'

/** What one user changed about the push rules, as far as these tests do. */
export interface Rules {
  /** Nothing in the room notifies. */
  muted: boolean
  /** Messages of the room notify only by keywords and mentions. */
  mentionsOnly: boolean
  /** A word that notifies; with or without a highlight. */
  keyword: 'none' | 'quiet' | 'loud'
  /** Edits notify as messages do. */
  edits: boolean
  /** Messages of groups notify. */
  messages: boolean
  /** Threads notify whoever follows them, and nobody else. */
  threads: boolean
}

export const DEFAULTS: Rules = {
  ...{ muted: false, mentionsOnly: false, keyword: 'none', edits: false, messages: true, threads: false },
}
export const KEYWORD = 'cake'

export interface Said {
  readonly id: string
  readonly sender: string
  readonly kind: 'message' | 'notice' | 'edit' | 'reaction' | 'member' | 'redaction' | 'state'
  readonly body: string
  readonly mentions: readonly string[]
  readonly mentionsRoom: boolean
  /** '' for the main timeline. */
  readonly root: string
}

interface Placed extends Said {
  readonly at: number
  redacted: boolean
  /** For whom it is kept, and whether it notifies and stands out. */
  readonly kept: ReadonlyMap<string, { notify: boolean; highlight: boolean }>
}

interface Reader {
  rules: Rules
  isIn: boolean
  /** Where their last membership stands. */
  since: number
  /** Where messages began to count. */
  countedFrom: number
  /** `kind thread`: position */
  readonly receipts: Map<string, number>
  /** Roots of threads. */
  readonly follows: Set<string>
  /** Users who are ignored, and where that began. */
  readonly ignores: Map<string, number>
  /** And who were. */
  readonly ignored: { readonly whom: string; readonly from: number; readonly to: number }[]
}

export interface Counts {
  readonly main: UnreadCounts
  readonly threads: Record<string, UnreadCounts>
}

/** A room as its unread counts are defined: everything is remembered, and each answer is computed from all of it. */
export class Model {
  readonly events: Placed[] = []
  readonly readers = new Map<string, Reader>()
  /** Who may notify the whole room. */
  readonly #admin: string

  constructor(admin: string) {
    this.#admin = admin
  }

  meet(user: string, rules: Rules): void {
    const nothing = { isIn: false, since: -1, countedFrom: -1 }
    this.readers.set(user, {
      ...nothing,
      rules,
      receipts: new Map(),
      follows: new Set(),
      ignores: new Map(),
      ignored: [],
    })
  }

  get joined(): string[] {
    return [...this.readers].filter(([, { isIn }]) => isIn).map(([user]) => user)
  }

  say(said: Said): void {
    const kept = new Map<string, { notify: boolean; highlight: boolean }>()
    for (const [user, { isIn, rules, ignores }] of this.readers) {
      if (!isIn || user === said.sender || rules.muted || ignores.has(said.sender)) continue
      const outcome = this.#outcome(user, rules, said)
      if (outcome.highlight || outcome.notify !== (countsForAll(said) && basis(rules))) kept.set(user, outcome)
    }
    this.events.push({ ...said, at: this.events.length, redacted: false, kept })
    const reader = said.kind === 'member' ? this.readers.get(said.sender) : undefined
    if (reader) reader.since = this.events.length - 1
  }

  enter(user: string, isIn: boolean, id: string): void {
    this.readers.get(user)!.isIn = isIn
    const nothing = { body: '', mentions: [], mentionsRoom: false, root: '' }
    this.say({ id, sender: user, kind: 'member', ...nothing })
    // Whoever leaves loses what was kept for them.
    if (!isIn) for (const { kept } of this.events) (kept as Map<string, unknown>).delete(user)
  }

  redact(id: string): void {
    this.events.find((event) => event.id === id)!.redacted = true
  }

  read(user: string, kind: string, thread: string | undefined, id: string): void {
    const { receipts } = this.readers.get(user)!
    const key = `${kind} ${thread ?? ''}`
    const at = this.events.findIndex((event) => event.id === id)
    receipts.set(key, Math.max(at, receipts.get(key) ?? -1))
  }

  follow(user: string, root: string, isFollowing: boolean): void {
    const { follows } = this.readers.get(user)!
    if (isFollowing) follows.add(root)
    else follows.delete(root)
  }

  ignore(user: string, whom: string, isIgnored: boolean): void {
    const { ignores, ignored } = this.readers.get(user)!
    const now = this.events.length - 1
    const from = ignores.get(whom)
    if (isIgnored) ignores.set(whom, from ?? now)
    else if (from !== undefined) {
      ignores.delete(whom)
      ignored.push({ whom, from, to: now })
    }
  }

  change(user: string, rules: Rules): void {
    const reader = this.readers.get(user)!
    if (!basis(reader.rules) && basis(rules) && reader.isIn) reader.countedFrom = this.events.length - 1
    reader.rules = rules
  }

  counts(user: string): Counts {
    const reader = this.readers.get(user)!
    const found = new Map<string, { notification_count: number; highlight_count: number }>()
    for (const event of this.events) {
      if (event.redacted || event.sender === user || event.at <= this.#readUpTo(user, event.root)) continue
      if (event.at > (reader.ignores.get(event.sender) ?? Number.POSITIVE_INFINITY)) continue
      if (reader.ignored.some(({ whom, from, to }) => whom === event.sender && event.at > from && event.at <= to))
        continue
      const own = event.kept.get(user)
      const isCounted = countsForAll(event) && basis(reader.rules) && event.at > reader.countedFrom
      const notify = own ? own.notify : isCounted
      const counts = found.get(event.root) ?? { notification_count: 0, highlight_count: 0 }
      counts.notification_count += notify ? 1 : 0
      counts.highlight_count += own?.highlight ? 1 : 0
      found.set(event.root, counts)
    }
    const { '': main = { notification_count: 0, highlight_count: 0 }, ...threads } = Object.fromEntries(found)
    const unread = Object.entries(threads).filter(
      ([, counts]) => counts.notification_count + counts.highlight_count > 0,
    )
    return { main, threads: Object.fromEntries(unread) }
  }

  #readUpTo(user: string, root: string): number {
    const { since, receipts } = this.readers.get(user)!
    const thread = root || 'main'
    const own = this.events.findLast(({ sender, root: of }) => sender === user && of === root)?.at ?? -1
    const read = ['m.read', 'm.read.private'].flatMap((kind) => [
      receipts.get(`${kind} `) ?? -1,
      receipts.get(`${kind} ${thread}`) ?? -1,
    ])
    return Math.max(since, own, ...read)
  }

  #outcome(user: string, rules: Rules, said: Said): { notify: boolean; highlight: boolean } {
    const silent = { notify: false, highlight: false }
    const loud = { notify: true, highlight: true }
    if (said.kind === 'notice' || said.kind === 'member') return silent
    if (said.mentions.includes(user)) return loud
    if (said.mentionsRoom && said.sender === this.#admin) return loud
    if (said.kind === 'reaction') return silent
    if (said.kind === 'edit' && !rules.edits) return silent
    if (rules.keyword !== 'none' && said.body.split(' ').includes(KEYWORD)) {
      return { notify: true, highlight: rules.keyword === 'loud' }
    }
    if (rules.threads && said.root !== '') {
      return { notify: this.readers.get(user)!.follows.has(said.root), highlight: false }
    }
    if (rules.mentionsOnly || (said.kind !== 'message' && said.kind !== 'edit')) return silent
    return { notify: rules.messages || this.joined.length === 2, highlight: false }
  }
}

const countsForAll = ({ kind }: Said): boolean => kind === 'message'

/** Whether plain messages notify. */
const basis = ({ muted, mentionsOnly, messages }: Rules): boolean => !muted && !mentionsOnly && messages
