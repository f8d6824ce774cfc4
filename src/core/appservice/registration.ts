import { isAlias, isMap, isScalar, isSeq, LineCounter, type ParsedNode, parseDocument } from 'yaml'
import { compileExpression, type Engine, type Expression } from './expression.ts'

export interface Namespace {
  readonly regex: string
  readonly exclusive: boolean
  readonly expression: Expression
}

export const NAMESPACE_KINDS = ['users', 'aliases', 'rooms'] as const
export type NamespaceKind = (typeof NAMESPACE_KINDS)[number]

/** The content of a registration file (application service API, "Registration"), with defaults for optional keys. */
export interface Registration {
  readonly id: string
  /** Null for a service that receives nothing. */
  readonly url: string | null
  readonly as_token: string
  readonly hs_token: string
  readonly sender_localpart: string
  readonly namespaces: Readonly<Record<NamespaceKind, readonly Namespace[]>>
  readonly rate_limited: boolean
  readonly protocols: readonly string[]
  /** Whether it receives typing, receipts and presence of its rooms, and messages to its users' devices. */
  readonly receive_ephemeral: boolean
  /** Whether it receives device list changes and the key counts of its own devices, for encryption. */
  readonly receive_device_data: boolean
  /** The module of a service in this process; a relative path is relative to the file. */
  readonly hosted?: string
}

/** A mistake in a registration file, or a conflict of several files. */
export interface RegistrationProblem {
  /** `irc.yaml:7` */
  readonly origin: string
  readonly message: string
}

/** The result of reading a registration file: the registration, if it is valid, and its problems. */
export interface ReadRegistration {
  readonly registration: Registration | undefined
  readonly problems: readonly RegistrationProblem[]
}

/** The specification's key and those of its proposals. */
const EPHEMERAL_KEYS = ['receive_ephemeral', 'de.sorunome.msc2409.push_ephemeral', 'push_ephemeral']
const DEVICE_DATA_KEYS = ['org.matrix.msc3202']

type Report = (node: ParsedNode | undefined, message: string) => undefined

/** Reads a registration file, YAML or JSON. Unknown keys are ignored, because services have some of their own. */
export function readRegistration(path: string, text: string, engine: Engine | undefined): ReadRegistration {
  const problems: RegistrationProblem[] = []
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false })
  const at = (offset: number) => `${path}:${Math.max(1, lines.linePos(offset).line)}`
  for (const { pos, message } of document.errors) problems.push({ origin: at(pos[0]), message })
  if (problems.length > 0) return { registration: undefined, problems }
  const report: Report = (node, message) => {
    problems.push({ origin: at(node?.range[0] ?? 0), message })
    return undefined
  }
  const root = document.contents as ParsedNode | null
  if (!isMap(root)) {
    report(
      undefined,
      'a registration holds keys with values: id, url, as_token, hs_token, sender_localpart, namespaces',
    )
    return { registration: undefined, problems }
  }
  const keys = new Map<string, ParsedNode>()
  for (const { key, value } of root.items as { key: ParsedNode; value: ParsedNode | null }[]) {
    // If a key has no value, the place of the key serves.
    if (isScalar(key)) keys.set(String(key.value), value ?? key)
  }
  const registration = new Reader(keys, report, engine).read()
  return { registration: problems.length === 0 ? registration : undefined, problems }
}

class Reader {
  readonly #keys: ReadonlyMap<string, ParsedNode>
  readonly #report: Report
  readonly #engine: Engine | undefined

  constructor(keys: ReadonlyMap<string, ParsedNode>, report: Report, engine: Engine | undefined) {
    this.#keys = keys
    this.#report = report
    this.#engine = engine
  }

  read(): Registration {
    return {
      id: this.#text('id'),
      url: this.#url(),
      as_token: this.#text('as_token'),
      hs_token: this.#text('hs_token'),
      sender_localpart: this.#sender(),
      namespaces: this.#namespaces(),
      rate_limited: this.#flag(['rate_limited']),
      protocols: this.#protocols(),
      receive_ephemeral: this.#flag(EPHEMERAL_KEYS),
      receive_device_data: this.#flag(DEVICE_DATA_KEYS),
      ...(this.#keys.has('hosted') && { hosted: this.#text('hosted') }),
    }
  }

  #required(name: string): ParsedNode | undefined {
    const node = this.#keys.get(name)
    return node ?? this.#report(undefined, `the key '${name}' is missing`)
  }

  #text(name: string): string {
    const node = this.#required(name)
    if (node === undefined) return ''
    // A token of digits is meant as text.
    const value = isScalar(node) && typeof node.value === 'number' ? String(node.source) : isScalar(node) && node.value
    if (typeof value === 'string' && value !== '' && !/\p{Cc}/u.test(value)) return value
    this.#report(node, `'${name}' must be a text that is not empty`)
    return ''
  }

  #sender(): string {
    const localpart = this.#text('sender_localpart')
    if (localpart !== '' && !/^[\x21-\x39\x3b-\x7e]{1,200}$/.test(localpart)) {
      this.#report(
        this.#keys.get('sender_localpart'),
        "'sender_localpart' is the part between '@' and ':' of a user id",
      )
    }
    return localpart
  }

  #url(): string | null {
    const node = this.#required('url')
    if (node === undefined || (isScalar(node) && (node.value === null || node.value === 'url'))) return null
    const value = isScalar(node) ? node.value : undefined
    if (typeof value === 'string' && /^https?:\/\//.test(value) && URL.canParse(value)) {
      const { search, hash } = new URL(value)
      if (search === '' && hash === '') return value.replace(/\/+$/, '')
    }
    this.#report(node, "'url' must be an address such as http://localhost:9000, without query, or null")
    return null
  }

  #flag(names: readonly string[]): boolean {
    const name = names.find((each) => this.#keys.has(each))
    const node = name === undefined ? undefined : this.#keys.get(name)
    if (node === undefined || (isScalar(node) && node.value === null)) return false
    if (isScalar(node) && typeof node.value === 'boolean') return node.value
    this.#report(node, `'${name}' must be true or false`)
    return false
  }

  #protocols(): string[] {
    const node = this.#keys.get('protocols')
    if (node === undefined || (isScalar(node) && node.value === null)) return []
    const names = isSeq(node) ? (node.toJSON() as unknown[]) : undefined
    if (names?.every((name): name is string => typeof name === 'string' && name !== '')) return names
    this.#report(node, "'protocols' must be a list of names")
    return []
  }

  #namespaces(): Registration['namespaces'] {
    const node = this.#required('namespaces')
    const empty = { users: [], aliases: [], rooms: [] }
    if (node === undefined) return empty
    // `namespaces:` with nothing under it has none.
    if (isScalar(node) && (node.value === null || node.value === 'namespaces')) return empty
    if (!isMap(node)) {
      this.#report(node, "'namespaces' must hold lists called users, aliases and rooms")
      return empty
    }
    const read = (kind: NamespaceKind) => this.#namespaceList(kind, node.get(kind, true) as ParsedNode | undefined)
    return { users: read('users'), aliases: read('aliases'), rooms: read('rooms') }
  }

  #namespaceList(kind: NamespaceKind, node: ParsedNode | undefined): Namespace[] {
    if (node === undefined || node === null || (isScalar(node) && node.value === null)) return []
    if (isAlias(node) || !isSeq(node)) {
      this.#report(node, `'namespaces.${kind}' must be a list, each item with a regex and exclusive`)
      return []
    }
    return node.items.flatMap((item) => this.#namespace(kind, item as ParsedNode) ?? [])
  }

  #namespace(kind: NamespaceKind, node: ParsedNode): Namespace | undefined {
    const value: unknown = isMap(node) ? node.toJSON() : undefined
    const { regex, exclusive } = (value ?? {}) as { regex?: unknown; exclusive?: unknown }
    if (typeof regex !== 'string' || typeof exclusive !== 'boolean') {
      return this.#report(
        node,
        `an item of 'namespaces.${kind}' needs a regex, which is a text, and exclusive: true or false`,
      )
    }
    try {
      return { regex, exclusive, expression: compileExpression(regex, this.#engine) }
    } catch (error) {
      return this.#report(node, `the regex ${JSON.stringify(regex)} cannot be used: ${(error as Error).message}`)
    }
  }
}

/** Conflicts between registrations that are each valid: `id` and `as_token` must be unique. */
export function conflictsOf(
  read: readonly { readonly path: string; readonly registration: Registration }[],
): RegistrationProblem[] {
  const problems: RegistrationProblem[] = []
  for (const key of ['id', 'as_token'] as const) {
    const seen = new Map<string, string>()
    for (const { path, registration } of read) {
      const earlier = seen.get(registration[key])
      if (earlier === undefined) seen.set(registration[key], path)
      else
        problems.push({
          origin: `${path}:1`,
          message: `its ${key} is also that of ${earlier}: each service has one of its own`,
        })
    }
  }
  return problems
}
