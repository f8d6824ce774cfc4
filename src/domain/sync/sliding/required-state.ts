import { hash } from 'node:crypto'

/** Stands for the user id of whoever asks. */
export const ME = 1

/** State events by type and state key; what is undefined matches all. */
export interface StatePattern {
  readonly type: string | undefined
  readonly stateKey: string | typeof ME | undefined
}

type Matcher = (type: string, stateKey: string, me: string) => boolean

const MEMBER = 'm.room.member'

/** One wish for state: what `include` matches and `exclude` does not. */
export class RequiredPart {
  /** All of it: the same for the same wish. */
  readonly text: string
  /** The same for the same wish, and short: wishes for rooms are joined in as many ways as there are rooms. */
  readonly key: string
  readonly include: readonly StatePattern[]
  readonly exclude: readonly StatePattern[]
  /** Members come as the timeline needs them; of the others, only those that a pattern names come too. */
  readonly lazyMembers: boolean
  #wants: Matcher | undefined

  constructor(include: readonly StatePattern[], exclude: readonly StatePattern[], lazyMembers: boolean) {
    this.include = include
    this.exclude = exclude
    this.lazyMembers = lazyMembers
    const texts = (patterns: readonly StatePattern[]) =>
      patterns.map(({ type, stateKey }) => [type ?? null, stateKey ?? null])
    this.text = JSON.stringify([texts(include), texts(exclude), lazyMembers ? 1 : 0])
    this.key = digest(this.text)
  }

  /** Whether a state event is asked for, lazily loaded members aside. */
  wants(type: string, stateKey: string, me: string): boolean {
    this.#wants ??= matcherOf(this)
    return this.#wants(type, stateKey, me)
  }

  /** Whether all members are asked for, so that a room is of no use while some are unknown. */
  get needsAllMembers(): boolean {
    const isAll = ({ type, stateKey }: StatePattern) =>
      (type === undefined || type === MEMBER) && stateKey === undefined
    return !this.lazyMembers && this.include.some(isAll)
  }
}

function matcherOf({ include, exclude, lazyMembers }: RequiredPart): Matcher {
  const isMember = ({ type, stateKey }: StatePattern) => type === MEMBER && stateKey === undefined
  const isIncluded = compile(include)
  const isExcluded = compile(exclude)
  if (!lazyMembers) return (type, stateKey, me) => isIncluded(type, stateKey, me) && !isExcluded(type, stateKey, me)
  const isNamed = compile(include.filter((pattern) => pattern.stateKey !== undefined))
  const isOther = compile(include.filter((pattern) => !isMember(pattern)))
  return (type, stateKey, me) => {
    const is = type === MEMBER ? isNamed : isOther
    return is(type, stateKey, me) && !isExcluded(type, stateKey, me)
  }
}

/** Looks each event up, so that a thousand patterns cost no more than one. */
function compile(patterns: readonly StatePattern[]): Matcher {
  if (patterns.length === 0) return () => false
  if (patterns.some(({ type, stateKey }) => type === undefined && stateKey === undefined)) return () => true
  const types = new Set<string>()
  const stateKeys = new Set<string | typeof ME>()
  const pairs = new Map<string, Set<string | typeof ME>>()
  for (const { type, stateKey } of patterns) {
    if (stateKey === undefined) types.add(type!)
    else if (type === undefined) stateKeys.add(stateKey)
    else pairs.set(type, (pairs.get(type) ?? new Set()).add(stateKey))
  }
  return (type, stateKey, me) => {
    if (types.has(type) || stateKeys.has(stateKey)) return true
    const keys = pairs.get(type)
    if (keys?.has(stateKey)) return true
    return stateKey === me && (stateKeys.has(ME) || keys?.has(ME) === true)
  }
}

/** What one or several wishes for a room ask for together (MSC4186, "required_state"). */
export interface RequiredState {
  /** The same for the same wishes, and short. */
  readonly key: string
  readonly parts: readonly RequiredPart[]
  /** Members come as the timeline needs them. */
  readonly isLazy: boolean
}

export function requiredState(parts: readonly RequiredPart[]): RequiredState {
  const isLazy = parts.some(({ lazyMembers }) => lazyMembers) && !parts.some(({ needsAllMembers }) => needsAllMembers)
  return { key: parts.length === 1 ? parts[0]!.key : digest(parts.map(({ key }) => key).join()), parts, isLazy }
}

const digest = (text: string): string => hash('sha256', text, 'base64url').slice(0, 24)

export function bothRequired(one: RequiredState, other: RequiredState): RequiredState {
  const byKey = new Map([...one.parts, ...other.parts].map((part) => [part.key, part]))
  if (byKey.size === one.parts.length) return one
  return requiredState([...byKey.keys()].sort().map((key) => byKey.get(key)!))
}

/** Whether a state event is asked for, lazily loaded members aside. @param me the user who asks */
export function isRequired({ parts }: RequiredState, type: string, stateKey: string, me: string): boolean {
  return parts.some((part) => part.wants(type, stateKey, me))
}

/** The state keys that patterns name whole. Undefined if a pattern has a wildcard, so that all state must be looked through. */
export function namedKeys(
  { parts }: RequiredState,
  me: string,
): readonly (readonly [type: string, stateKey: string])[] | undefined {
  const named: [string, string][] = []
  for (const { include, lazyMembers } of parts) {
    for (const { type, stateKey } of include) {
      if (type !== undefined && stateKey !== undefined) named.push([type, stateKey === ME ? me : stateKey])
      else if (!lazyMembers || type !== MEMBER) return undefined
    }
  }
  return named
}
