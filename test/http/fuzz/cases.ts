import { expandPath } from '../../../src/core/paths.ts'
import { MAX_ANONYMOUS_BODY_BYTES } from '../../../src/domain/limits.ts'
import type { Endpoint } from '../../../src/http/endpoint.ts'
import {
  isWrongType,
  type Node,
  nodeOf,
  type Pointer,
  pointersOf,
  put,
  type SchemaNode,
  schemaAt,
  schemaOf,
  textOf,
} from './body.ts'
import { bodyExample, PLAIN_STATE, pathExample, queryExample, STATE_TYPES } from './examples.ts'
import { BODIES, type Dice, JSON_VALUES, PATH_VALUES, QUERY_VALUES } from './values.ts'
import type { Framing, Request } from './wire.ts'
import { ACTORS, type Actor, type Scene } from './world.ts'

/** A request in parts, before it is written out. */
interface Draft {
  actor: Actor
  path: string
  readonly params: Map<string, string>
  /** `name=value` as they stand in the URL. */
  query: string[]
  tree: Node | undefined
  bytes: string | Buffer | undefined
  readonly headers: Record<string, string>
  framing: Framing
}

/** One thing that is done to a request that would be right, and what it must be answered with if it is all that is wrong. */
interface Twist {
  readonly name: string
  /** False when the request has no place for it. */
  readonly apply: (draft: Draft) => boolean | undefined
  readonly errcodes?: readonly string[]
  /** The type of state whose content it twists. */
  readonly stateType?: string
}

export interface Case {
  /** What is odd about it. */
  readonly name: string
  readonly actor: Actor
  readonly request: Request
  /** Any of these, where the request got so far. */
  readonly errcodes: readonly string[] | undefined
}

const quote = (text: string) => (text.length > 60 ? `${text.slice(0, 40)}… (${text.length})` : text)

const paramNames = (path: string) =>
  [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]!).filter((name) => name !== 'root')

function pathTwists(path: string): Twist[] {
  return paramNames(path).flatMap((param) =>
    PATH_VALUES.map((value) => ({
      name: `{${param}} is ${quote(value)}`,
      apply: ({ params }: Draft) => void params.set(param, value),
    })),
  )
}

const PATH_TRICKS: readonly (readonly [string, (path: string) => string])[] = [
  ['a leading //', (path) => `/${path}`],
  ['// within', (path) => path.replace('/', '//').replace(/\/(?=[^/]*$)/, '//')],
  ['a trailing //', (path) => `${path}//`],
  ['/./', (path) => path.replace(/\/(?=[^/]*$)/, '/./')],
  ['/../', (path) => path.replace(/\/(?=[^/]*$)/, '/x/../')],
  ['%2e%2e', (path) => `${path}/%2e%2e/%2e%2e`],
  ['..;', (path) => path.replace(/\/(?=[^/]*$)/, '/..;/')],
  [';', (path) => `${path};a=b`],
  ['%2f for /', (path) => path.replace(/\/(?=[^/]*$)/, '%2f')],
  ['%00 at the end', (path) => `${path}%00`],
  ['something behind', (path) => `${path}/extra`],
  ['upper case', (path) => path.toUpperCase()],
  ['an absolute form', (path) => `http://elsewhere.test${path}`],
  ['no slash', (path) => path.slice(1)],
  ['bytes of Latin-1', (path) => `${path}\xff\xfe`],
  ['a fragment', (path) => `${path}#x`],
  ['two question marks', (path) => `${path}??a=b?c`],
]

function queryTwists(endpoint: Endpoint): Twist[] {
  const declared = Object.keys(schemaOf(endpoint.options.query)?.properties ?? {})
  const without = (draft: Draft, name: string) => draft.query.filter((pair) => !pair.startsWith(`${name}=`))
  const set =
    (name: string, ...pairs: string[]) =>
    (draft: Draft) =>
      void Object.assign(draft, { query: [...without(draft, name), ...pairs] })
  const repeated = (name: string) =>
    schemaOf(endpoint.options.query)?.properties?.[name]?.type === 'array' ? [] : ['M_INVALID_PARAM']
  const unknownNames = ['access_token', 'user_id', '__proto__', 'constructor', '', 'x[y]']
  const values = [...declared, ...unknownNames].flatMap((name) =>
    QUERY_VALUES.map((value) => ({ name: `?${name}=${quote(value)}`, apply: set(name, `${name}=${value}`) })),
  )
  const shapes = declared.flatMap((name): Twist[] => [
    { name: `?${name} absent`, apply: set(name) },
    { name: `?${name} without a value`, apply: set(name, name) },
    { name: `?${name} twice`, apply: set(name, `${name}=1`, `${name}=2`), errcodes: repeated(name) },
    { name: `?${name}[]`, apply: set(name, `${name}[]=1`, `${name}[__proto__]=2`) },
    {
      name: `?${name} 500 times`,
      apply: set(name, ...Array<string>(500).fill(`${name}=1`)),
      errcodes: repeated(name),
    },
  ])
  return [...values, ...shapes]
}

function wholeBodyTwists({ method, options }: Endpoint): Twist[] {
  const bodies = BODIES.map(([name, bytes, errcode]): Twist => {
    const isBounded = method !== 'GET' && options.maxBodyBytes === undefined && !options.streamed
    const isRead = errcode === 'M_TOO_LARGE' ? isBounded : options.body !== undefined
    const apply = (draft: Draft) => void Object.assign(draft, { bytes })
    const isOfNobody = !['user', 'admin', 'identity', 'hosted', 'server'].includes(options.auth)
    // Of who is not known so much is not even read.
    const isUnread = isOfNobody && bytes.length > MAX_ANONYMOUS_BODY_BYTES
    const errcodes = errcode !== undefined && isRead ? [errcode, ...(isUnread ? ['M_TOO_LARGE'] : [])] : undefined
    return { name: `the body is ${name}`, apply, ...(errcodes && { errcodes }) }
  })
  return [
    ...bodies,
    { name: 'a byte-order mark', apply: (draft) => void Object.assign(draft, { bytes: `\ufeff${bytesOf(draft)}` }) },
  ]
}

function bodyTwists(endpoint: Endpoint, tree: Node | undefined): Twist[] {
  if (tree === undefined) return []
  const schema = schemaOf(endpoint.options.body)
  const pointers = [...pointersOf(tree, schema), ...(endpoint.options.uia ? [['auth', 'session']] : [])]
  return pointers.flatMap((pointer) => [
    ...JSON_VALUES.map((text) => valueTwist(endpoint, pointer, text)),
    { name: `${pointer.join('.')} absent`, apply: ({ tree: root }: Draft) => put(root!, pointer, undefined) },
  ])
}

function isOptional(schema: SchemaNode | undefined, pointer: Pointer): boolean {
  const within = schemaAt(schema, pointer.slice(0, -1))
  const name = String(pointer.at(-1))
  return within?.properties?.[name] !== undefined && within.required?.includes(name) !== true
}

/** `1.0` and numbers no double can hold are wrong in another way than their type. */
function valueTwist({ options, path }: Endpoint, pointer: Pointer, text: string): Twist {
  const name = `${pointer.join('.')} is ${quote(text)}`
  const apply = ({ tree }: Draft) => put(tree!, pointer, text)
  if (text === '1e999') return { name, apply, errcodes: ['M_NOT_JSON'] }
  // User-interactive authentication answers with what is to be done, whatever is wrong with `auth`.
  const isJudged = pointer[0] !== 'auth' && !(path === 'C/register')
  const isWrong =
    isJudged &&
    // Where a key is optional, `null` is its absence.
    !(text === 'null' && isOptional(schemaOf(options.body), pointer)) &&
    !/[.e]/.test(text.replace(/"[^"]*"/g, '')) &&
    isWrongType(schemaAt(schemaOf(options.body), pointer), text)
  return { name, apply, ...(isWrong && { errcodes: ['M_BAD_JSON', 'M_INVALID_PARAM'] }) }
}

const HEADERS: readonly (readonly [name: string, value: string, errcode?: string])[] = [
  ['content-type', ';;;', 'M_NOT_JSON'],
  ['content-type', 'text/plain'],
  ['content-type', 'multipart/form-data; boundary=x'],
  ['content-type', 'Multipart/Form-Data'],
  ['content-type', 'application/json; charset=utf-16'],
  ['content-type', `application/${'x'.repeat(5000)}`],
  ['content-encoding', 'gzip'],
  ['accept', 'text/html'],
  ['accept-encoding', 'br;q=x'],
  ['x-forwarded-for', '__proto__, ::1, 999.1.1.1'],
  ['forwarded', 'for=";'],
  ['origin', 'null'],
  ['user-agent', 'x'.repeat(20_000)],
  ['user-agent', '\x80\xff'],
  ['if-none-match', '*'],
  ['range', 'bytes=0-0'],
  ['x-http-method-override', 'DELETE'],
  ['authorization', 'Basic eDp4'],
  ['authorization', 'Bearer'],
  ['authorization', 'Bearer a b c'],
  ['authorization', `Bearer ${'x'.repeat(20_000)}`],
  ['authorization', 'Bearer \x80'],
]

function wireTwists({ method }: Endpoint): Twist[] {
  const framings: Framing[] = ['chunked', 'half a body', 'half a chunk', 'two lengths', 'length and chunks']
  return [
    ...HEADERS.map(([header, value, errcode]): Twist => {
      const apply = ({ headers }: Draft) => void Object.assign(headers, { [header]: value })
      return { name: `${header}: ${quote(value)}`, apply, ...(errcode && method !== 'GET' && { errcodes: [errcode] }) }
    }),
    ...framings.map((framing): Twist => ({ name: framing, apply: (draft) => void Object.assign(draft, { framing }) })),
    ...PATH_TRICKS.map(([name, trick]) => ({
      name,
      apply: (draft: Draft) => void Object.assign(draft, { path: trick(draft.path) }),
    })),
    { name: 'an unasked body', apply: (draft) => void Object.assign(draft, { bytes: bytesOf(draft) ?? '{"x":1}' }) },
  ]
}

const bytesOf = ({ bytes, tree }: Draft) => bytes ?? (tree === undefined ? undefined : textOf(tree))

function draftOf(endpoint: Endpoint, scene: Scene, actor: Actor, stateType: string, dice: Dice): Draft {
  const specification = dice.pick([endpoint.path, ...(endpoint.options.also ?? [])])
  const names = Object.keys(schemaOf(endpoint.options.query)?.properties ?? {})
  const pairs = names.map((name) => [name, queryExample(name, endpoint.path, scene)] as const)
  const params = paramNames(endpoint.path).map((name): [string, string] => [
    name,
    encodeURIComponent(pathExample(name, `${endpoint.method} ${endpoint.path}`, scene, actor, stateType)),
  ])
  const { token } = scene.accounts[actor]
  return {
    actor,
    path: dice.pick(expandPath(specification)).path,
    params: new Map(params),
    query: pairs.flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`])),
    tree: endpoint.options.body && nodeOf(bodyExample(endpoint, scene, actor, stateType)),
    bytes: undefined,
    headers: { ...(token !== '' && { authorization: `Bearer ${token}` }) },
    framing: 'whole',
  }
}

function requestOf(endpoint: Endpoint, draft: Draft): Request {
  const path = draft.path.replace(/:(\w+)/g, (whole, name: string) => draft.params.get(name) ?? whole)
  return {
    method: endpoint.method,
    path: draft.query.length === 0 ? path : `${path}?${draft.query.join('&')}`,
    headers: draft.headers,
    body: bytesOf(draft),
    framing: draft.framing,
  }
}

/** Every twist of an endpoint, in groups of one kind, each group in an order of its own. */
function twistsOf(endpoint: Endpoint, scene: Scene, dice: Dice): Twist[][] {
  const stateTrees = endpoint.path.includes('/state/') ? STATE_TYPES : [PLAIN_STATE]
  const bodies = stateTrees.flatMap((stateType) => {
    const tree = endpoint.options.body && nodeOf(bodyExample(endpoint, scene, 'owner', stateType))
    return bodyTwists(endpoint, tree).map((twist): Twist => ({ ...twist, stateType }))
  })
  const groups = [
    pathTwists(endpoint.path),
    queryTwists(endpoint),
    wholeBodyTwists(endpoint),
    bodies,
    wireTwists(endpoint),
  ]
  return groups.filter((group) => group.length > 0).map((group) => dice.shuffle(group))
}

/**
 * `count` cases of an endpoint: one for each state of authentication, then one twist at a time in turns of its kinds, then, when all
 * have had their turn, several at a time. A case is made when it is asked for, from the scene as it is then.
 */
export function* casesOf(endpoint: Endpoint, scene: () => Scene, dice: Dice, count: number): Generator<Case> {
  for (const actor of ACTORS) yield caseOf(endpoint, draftOf(endpoint, scene(), actor, PLAIN_STATE, dice), [])
  const groups = twistsOf(endpoint, scene(), dice)
  const singles: Twist[] = []
  const longest = Math.max(...groups.map((group) => group.length))
  for (let turn = 0; turn < longest; turn++) singles.push(...groups.flatMap((group) => group[turn] ?? []))
  for (let made = ACTORS.length; made < count; made++) {
    const single = singles[made - ACTORS.length]
    const twists = single ? [single] : [dice.pick(singles), dice.pick(singles), dice.pick(singles)]
    // Mostly those who get furthest.
    const actor = dice.pick<Actor>(['owner', 'owner', 'owner', 'owner', 'member', 'stranger', 'guest', 'nobody'])
    const stateType = twists[0]?.stateType ?? PLAIN_STATE
    yield caseOf(endpoint, draftOf(endpoint, scene(), actor, stateType, dice), twists)
  }
}

function caseOf(endpoint: Endpoint, draft: Draft, twists: readonly Twist[]): Case {
  const isWhole = twists.map(({ apply }) => apply(draft)).every((applied) => applied !== false)
  return {
    name: [draft.actor, ...twists.map(({ name }) => name)].join(', '),
    actor: draft.actor,
    request: requestOf(endpoint, draft),
    errcodes: isWhole ? expectedOf(endpoint, draft.actor, twists) : undefined,
  }
}

/** What a refusal must be when nothing else is wrong: who calls is judged first, then the rest. */
function expectedOf({ options }: Endpoint, actor: Actor, twists: readonly Twist[]): readonly string[] | undefined {
  const isOpen = options.auth === 'none' || options.auth === 'appservice-optional'
  if (twists.length === 0) {
    if (!isOpen && actor === 'unknown') return ['M_UNKNOWN_TOKEN']
    if (options.auth === 'user' && actor === 'nobody') return ['M_MISSING_TOKEN']
    if (options.auth === 'user' && actor === 'guest' && !options.guests) return ['M_GUEST_ACCESS_FORBIDDEN']
    return undefined
  }
  const [twist] = twists
  if (twists.length > 1 || actor !== 'owner' || twist?.errcodes?.length === 0) return undefined
  return twist?.errcodes
}
