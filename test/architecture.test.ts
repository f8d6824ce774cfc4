import { basename, dirname } from 'node:path'
import { describe, expect, test } from 'vitest'
import { functionLengths } from './support/function-lengths.ts'
import { SOURCES, type Source, TEST_SOURCES } from './support/sources.ts'

/** Which folders of src/ each one may import from, besides itself. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  core: [],
  config: ['core'],
  store: ['core'],
  outbound: ['core'],
  domain: ['core', 'store', 'outbound'],
  http: ['core', 'domain'],
  routes: ['core', 'http', 'domain'],
  workers: ['core', 'store', 'outbound', 'domain'],
  // It runs in browsers: it has the server's answers, and none of the server's code. Nor does the server import it.
  console: [],
}

/** Files at the top, which put the layers together, and the commands. */
const TOP = new Set([
  'main.ts',
  'app.ts',
  'areas.ts',
  'base.ts',
  'context.ts',
  'endpoint-services.ts',
  'identity-role.ts',
  'identity-alone.ts',
  'levels.ts',
  'running.ts',
  'server.ts',
  'standing-by.ts',
  'stopping.ts',
])

/** The folders of domain/rooms/: each imports from those before it, types included. `docs/ARCHITECTURE.md` says what lies where. */
const ROOM_FOLDERS = ['room', 'write', 'receive', 'remote', 'backfill', 'act', 'read']

function roomFolderOf(name: string): string | undefined {
  return /^domain\/rooms\/([^/]+)\//.exec(name)?.[1]
}

function offenders(pattern: RegExp, sources = SOURCES): string[] {
  return sources.flatMap(({ name, code }) => [...code.matchAll(pattern)].map(([found]) => `${name}: ${found.trim()}`))
}

function layerOf(target: string): string {
  return target.includes('/') ? target.slice(0, target.indexOf('/')) : ''
}

test('every folder of src/ is a known layer', () => {
  const found = new Set(SOURCES.map(({ layer, name }) => layer || name))
  const known = new Set([...Object.keys(MAY_IMPORT), ...TOP, 'cli'])
  expect(
    [...found].filter((name) => !known.has(name)),
    'put it into one of the folders of src/, or give the new folder its place in MAY_IMPORT',
  ).toEqual([])
  expect(SOURCES.length).toBeGreaterThan(50)
})

describe('imports follow one direction', () => {
  test.each(Object.entries(MAY_IMPORT))('%s imports from [%s] at most', (layer, allowed) => {
    const wrong = SOURCES.filter((source) => source.layer === layer).flatMap(({ name, imports }) =>
      imports
        .filter(({ target, isType }) => {
          const to = layerOf(target)
          return to !== layer && !allowed.includes(to) && !(isType && to === 'config')
        })
        .map(({ target }) => `${name} -> ${target}`),
    )
    expect(wrong, `take it as a parameter of a type that ${layer}/ declares, or move what is shared down`).toEqual([])
  })

  test.each(ROOM_FOLDERS)('domain/rooms/%s imports from no folder above it', (folder) => {
    const above = ROOM_FOLDERS.slice(ROOM_FOLDERS.indexOf(folder) + 1)
    const wrong = SOURCES.filter(({ name }) => roomFolderOf(name) === folder).flatMap(({ name, imports }) =>
      imports
        .filter(({ target }) => above.includes(roomFolderOf(target) ?? ''))
        .map(({ target }) => `${name} -> ${target}`),
    )
    expect(wrong, `move what is shared down to ${folder}/ or below it, or the file up`).toEqual([])
  })

  test('every file of domain/rooms lies in one of its folders, or puts them together', () => {
    const placed = SOURCES.filter(({ name }) => name.startsWith('domain/rooms/'))
    const astray = placed.filter(
      ({ name }) =>
        !ROOM_FOLDERS.includes(roomFolderOf(name) ?? '') && !/^domain\/rooms\/[a-z-]+-services\.ts$/.test(name),
    )
    expect(
      astray.map(({ name }) => name),
      `the folders are ${ROOM_FOLDERS.join(', ')}`,
    ).toEqual([])
  })

  test('every import names a file that is there', () => {
    const names = new Set(SOURCES.map(({ name }) => name))
    const missing = SOURCES.flatMap(({ name, imports }) =>
      imports.filter(({ target }) => !names.has(target)).map(({ target }) => `${name} -> ${target}`),
    )
    expect(missing, 'correct the path').toEqual([])
  })

  test('there is no circle, types included', () => {
    const edges = new Map(SOURCES.map(({ name, imports }) => [name, imports.map(({ target }) => target)]))
    const circles = [...edges.keys()].map((name) => cycleFrom(name, edges)).filter((circle) => circle !== undefined)
    expect(circles, 'move what both need into a file of its own').toEqual([])
  })
})

/** The path by which a file imports itself, if it does. */
function cycleFrom(start: string, edges: ReadonlyMap<string, readonly string[]>): string | undefined {
  const seen = new Set<string>()
  const pending: string[][] = [[start]]
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    for (const next of edges.get(path.at(-1) ?? '') ?? []) {
      if (next === start) return [...path, start].join(' -> ')
      if (seen.has(next)) continue
      seen.add(next)
      pending.push([...path, next])
    }
  }
  return undefined
}

/** What the rules of this part read of a file. */
type Placed = Pick<Source, 'name' | 'layer' | 'code' | 'imports'>

/** From where a file of domain/ is imported: folders of domain/ and files beside them, other layers, files at the top. */
function placesThatImport(file: string, sources: readonly Placed[]): string[] {
  const importers = sources.filter(({ imports }) => imports.some(({ target }) => target === file))
  return [...new Set(importers.map(({ name, layer }) => (layer === 'domain' ? domainPlaceOf(name) : layer || name)))]
}

function domainPlaceOf(name: string): string {
  const [, folder, inside] = name.split('/')
  return inside === undefined ? name : `domain/${folder}`
}

/** The files beside the folders of domain/ that serve one place alone, and where they belong. */
function astrayInDomain(sources: readonly Placed[]): string[] {
  const beside = sources.filter(({ name }) => /^domain\/[^/]+$/.test(name))
  return beside.flatMap(({ name }) => {
    const [place = '', ...others] = placesThatImport(name, sources)
    if (place === '') return [`${name}: nothing imports it`]
    return others.length > 0 ? [] : [`${name}: only ${place} imports it`]
  })
}

function unimported(sources: readonly Placed[]): string[] {
  const imported = new Set(sources.flatMap(({ imports }) => imports.map(({ target }) => target)))
  return sources.map(({ name }) => name).filter((name) => !imported.has(name) && !BEGINNINGS.has(name))
}

/** The files with which a program begins. */
const BEGINNINGS = new Set(['main.ts', 'console/main.tsx'])

const besideFolders = (sources: readonly Placed[]) =>
  sources.map(({ name }) => name).filter((name) => /^(?:store|routes)\/[^/]+$/.test(name))

const SQL = /[`'"]\s*(?:SELECT|INSERT INTO|UPDATE|DELETE FROM|WITH) [a-z"*($][^`'"\n]*/g
/** Beside store/: the copy of whole databases, and the commands. `SELECT 1` asks whether a database answers. */
const MAY_QUERY = /^(?:store|cli|domain\/backup)\//
const strayQueries = (sources: readonly Source[]) =>
  offenders(
    SQL,
    sources.filter(({ name }) => !MAY_QUERY.test(name)),
  )

describe('a file that imports nothing has its place too', () => {
  test('in domain/: with what it is for, or beside the folders if it serves several', () => {
    const advice = 'move it into the folder that imports it; one that nothing imports, into the folder of its subject'
    expect(astrayInDomain(SOURCES), advice).toEqual([])
  })

  test('in store/ and routes/: in a folder', () => {
    const advice = 'put it into the folder of its tables in store/, or of its role in routes/'
    expect(besideFolders(SOURCES), advice).toEqual([])
  })

  test('in every layer: where something imports it', () => {
    expect(unimported(SOURCES), 'import it where it is used, or remove it').toEqual([])
  })

  test('and SQL is in store/', () => {
    expect(strayQueries(SOURCES), 'make it a function of a module of store/').toEqual([])
  })

  test('and only http/ and what begins the server know the framework, only store/ and the commands the database', () => {
    const others = (may: RegExp) => SOURCES.filter(({ name }) => !may.test(name))
    const knowsHttp = /^(?:http\/|(?:app|server|stopping|identity-alone)\.ts$)/
    expect(offenders(/from '@?fastify[^']*'/g, others(knowsHttp)), 'take what http/ made of the request').toEqual([])
    const isType = /(?<!import type [^;']*)from 'pg(?:-[^']*)?'/g
    expect(offenders(isType, others(/^(?:store|cli)\//)), 'take a Reader or a Tx').toEqual([])
  })

  const file = (name: string, ...targets: readonly string[]): Source => {
    const layer = name.includes('/') ? name.slice(0, name.indexOf('/')) : ''
    const imports = targets.map((target) => ({ target, isType: false }))
    return { name, layer, imports, code: '', text: '', lines: 1 }
  }

  test.each([
    ['nothing imports', [], ['domain/x.ts: nothing imports it']],
    ['one folder imports', ['domain/sync/a.ts', 'domain/sync/b/c.ts'], ['domain/x.ts: only domain/sync imports it']],
    ['one layer imports', ['http/a.ts'], ['domain/x.ts: only http imports it']],
    ['two folders import', ['domain/sync/a.ts', 'domain/push/a.ts'], []],
    ['a folder and a layer import', ['domain/sync/a.ts', 'http/a.ts'], []],
  ])('one in domain/ that %s', (_what, importers, found) => {
    const sources = [file('domain/x.ts'), ...importers.map((name) => file(name, 'domain/x.ts'))]
    expect(astrayInDomain(sources)).toEqual(found)
  })

  test.each(['store/x.ts', 'routes/x.ts'])('%s is found', (name) => {
    expect(besideFolders([file(name), file('store/rooms/x.ts'), file('routes/client/role.ts')])).toEqual([name])
  })

  test.each(['core/x.ts', 'http/x.ts', 'store/rooms/x.ts', 'routes/client/rooms/x.ts'])(
    'a lone %s is found',
    (name) => {
      expect(unimported([file('main.ts', 'app.ts'), file('app.ts'), file(name)])).toEqual([name])
    },
  )

  test('SQL elsewhere is found', () => {
    const code = 'const text = `SELECT room_nid FROM room`'
    expect(strayQueries([{ ...file('domain/rooms/x.ts'), code }])).toHaveLength(1)
    expect(strayQueries([{ ...file('store/rooms/x.ts'), code }])).toEqual([])
  })
})

/** Words of our own for what the field has a word for: `docs/GLOSSARY.md`. They are parts of names: `filling` is one of `isFilling`. */
const RETIRED: readonly (readonly [words: readonly string[], instead: string])[] = [
  [
    ['filling', 'fillings', 'filler'],
    'partial state for the room, resync for fetching what is missing, backfill for its history',
  ],
  [['told', 'untold'], 'sent, queued, fetched or answered'],
  [['lane', 'lanes'], 'keyed queue, or connection'],
  [['vet', 'vets', 'vetted', 'vetter', 'vetting'], 'check'],
  [['expel', 'expeller', 'expulsion'], 'kick, ban or leave'],
  [['adoption', 'adopted'], 'process join'],
  [['hearer', 'hearers'], 'listener'],
  [['asker'], 'query'],
]

/** The parts of the names that a file declares or uses, and of its own name, each with a name that it is in. */
function partsOfNames({ name, code }: { readonly name: string; readonly code: string }): ReadonlyMap<string, string> {
  const withoutTexts = code.replace(/'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/g, "''")
  const names = [...withoutTexts.matchAll(/[A-Za-z_]\w*/g)].map(([found]) => found)
  return new Map(
    [...names, basename(name, '.ts')].flatMap((each) =>
      each.split(/[_.-]|(?<=[a-z0-9])(?=[A-Z])/).map((part) => [part.toLowerCase(), each] as const),
    ),
  )
}

const NAMES = [...SOURCES, ...TEST_SOURCES].map((source) => ({ name: source.name, parts: partsOfNames(source) }))

describe('names are in the words of the field', () => {
  test.each(RETIRED)('none says %j', (words, instead) => {
    const found = NAMES.flatMap(({ name, parts }) =>
      words.flatMap((word) => (parts.has(word) ? [`${name}: ${parts.get(word)}`] : [])),
    )
    expect(found, `say ${instead}; docs/GLOSSARY.md has the words`).toEqual([])
  })

  test.each([
    ['room-filling.ts', '', 'filling'],
    ['room.ts', 'const isFilling = true', 'filling'],
    ['room.ts', 'const MAX_LANES = 4', 'lanes'],
    ['room.ts', 'class GapFiller {}', 'filler'],
    ['room.ts', 'let room_told: string', 'told'],
  ])('in %s, %j, it is found', (name, code, word) => {
    expect([...partsOfNames({ name, code }).keys()]).toContain(word)
  })

  test('in a text, which may be a table of the previous release, it is not', () => {
    const parts = partsOfNames({ name: 'a.ts', code: "const a = 'room_filling'; const b = `room_filling`" })
    expect([...parts.keys()]).not.toContain('filling')
  })
})

test('no folder is a hall', () => {
  const folders = new Map<string, number>()
  for (const { name } of SOURCES) folders.set(dirname(name), (folders.get(dirname(name)) ?? 0) + 1)
  const halls = [...folders].filter(([, files]) => files > 40).map(([folder, files]) => `${folder}: ${files} files`)
  expect(halls, 'divide these by subject').toEqual([])
})

test('only main.ts knows the process it runs in', () => {
  const others = SOURCES.filter(({ name }) => name !== 'main.ts')
  expect(offenders(/\b(?:process|console)\.\w+/g, others), 'take it from the Host, or write to the log').toEqual([])
  // Signals to a Postgres that an earlier process left behind; the clock that all threads have.
  const mayImport = ['store/embedded/cluster.ts', 'http/nodes/version-thread.ts']
  const own = others.filter(({ name }) => !mayImport.includes(name))
  expect(offenders(/'node:process'/g, own), 'take it from the Host').toEqual([])
})

describe('the console runs in browsers', () => {
  const ours = SOURCES.filter(({ layer }) => layer === 'console')

  test('with few packages, and nothing of Node.js', () => {
    const packages = ours.flatMap(({ code }) =>
      [...code.matchAll(/(?:from|import)\s*\(?'([^.'][^']*)'/g)].map(([, name]) => name),
    )
    expect([...new Set(packages)].sort(), 'write it yourself, or say here why browsers load one more').toEqual([
      'preact',
      'preact/hooks',
      'uplot',
    ])
  })

  test('and no file of the server imports one of it', () => {
    const importers = SOURCES.filter(({ layer }) => layer !== 'console').filter(({ imports }) =>
      imports.some(({ target }) => layerOf(target) === 'console'),
    )
    expect(
      importers.map(({ name }) => name),
      'move what both need into core/',
    ).toEqual([])
  })

  test('without markup made of texts, and keeping nothing in the browser but a language and a place', () => {
    const markup = /innerHTML|outerHTML|insertAdjacentHTML|dangerouslySet\w*|document\.write|\beval\b|document\.cookie/g
    expect(offenders(markup, ours), 'give texts to Preact as children').toEqual([])
    const others = ours.filter(({ name }) => name !== 'console/kept.ts')
    expect(offenders(/localStorage|sessionStorage|indexedDB/g, others), 'keep it in the page, or in kept.ts').toEqual(
      [],
    )
  })
})

test('core has no clock, no randomness and no I/O', () => {
  const core = SOURCES.filter(({ layer }) => layer === 'core')
  expect(
    offenders(/\b(?:Date\.now|new Date\(\)|Math\.random|randomBytes|performance\.|setTimeout|setInterval)\b/g, core),
    'take the time or the bytes as a parameter',
  ).toEqual([])
  expect(
    offenders(/from '(?:node:(?:fs|net|http|child_process|timers)[^']*|fastify|pg|pino|undici)'/g, core),
    'take what was read as a parameter, or move the file to the layer that may read it',
  ).toEqual([])
})

/** Who opens sockets: the one guarded client with its tunnels, mail (to the operator's own server), listeners, and nodes to each other. */
const CONNECTS =
  /^(?:outbound\/(?:connections|mail|proxy\/tunnel)|cli\/doctor\/turn-probe|http\/(?:https|unix-socket|listeners|nodes\/(?:front|forwarder|outgoing))|cli\/serve\/metrics-listener|store\/embedded\/lock)\.ts$/

test('nobody makes a connection past the guard of addresses', () => {
  const others = SOURCES.filter(({ name }) => !CONNECTS.test(name))
  const makesOne =
    /(?<!type )\b(?:connect|createConnection|Agent|Pool|Client|createServer|createTransport)\b[^'";]*from '(?:undici|node:(?:net|tls|https?)|nodemailer)'/g
  const guarded = 'call through outbound/, or name the file in CONNECTS with the reason'
  expect(offenders(makesOne, others), guarded).toEqual([])
  expect(offenders(/\('undici\b[^']*'\)/g, others), guarded).toEqual([])
  // The commands speak to the server they are for.
  const served = others.filter(({ layer }) => layer !== 'cli')
  expect(offenders(/(?:globalThis\.|await |return |= )fetch\('?http[^)]*|new WebSocket\b/g, served), guarded).toEqual(
    [],
  )
})

test('domain keeps no state in its modules', () => {
  const domain = SOURCES.filter(({ layer }) => layer === 'domain')
  const inFactory = 'make it in a create…() function: two servers of one process must not share it'
  expect(offenders(/^(?:export )?(?:let|var) .*$/gm, domain), inFactory).toEqual([])
  expect(
    offenders(
      /^(?:export )?const \w+(?:: (?!Readonly|readonly)[^=\n]+)? = (?:new (?:Map|Set|WeakMap|Array|LRUCache)\b.*\(\)|\[\]|\{\})$/gm,
      domain,
    ),
    inFactory,
  ).toEqual([])
})

test('room versions are compared in their table alone', () => {
  const others = SOURCES.filter(({ name }) => name !== 'core/room-version.ts')
  const property = 'give the version a property in core/room-version.ts, and ask for that'
  expect(offenders(/version(?:\.id|Id)?\s*(?:[=!]==?|[<>]=?)\s*['"]\d.*/gi, others), property).toEqual([])
  expect(offenders(/case '\d{1,2}':/g, others), property).toEqual([])
})

test('an endpoint is one file, named as its export, and in the list of its role', () => {
  const routes = SOURCES.filter(({ layer, name }) => layer === 'routes' && basename(name) !== 'index.ts')
  for (const { name, code } of routes) {
    const declared = [...code.matchAll(/^export const (\w+) = endpoint\(/gm)].map(([, found]) => found)
    if (declared.length === 0) continue
    const expected = basename(name, '.ts').replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())
    expect(declared, `${name}: export one endpoint, named as the file is`).toEqual([expected])
    const index = SOURCES.find((source) => source.name === `${name.split('/', 2).join('/')}/index.ts`)
    expect(
      index?.imports.map(({ target }) => target),
      `${name}: add it to the list of endpoints in the index.ts of its role`,
    ).toContain(name)
  }
  expect(
    offenders(
      /endpoint\(/g,
      SOURCES.filter(({ name }) => /^routes\/.*index\.ts$/.test(name)),
    ),
    'move it into a file of its own',
  ).toEqual([])
})

test('files are named in kebab-case and stay below 400 lines', () => {
  expect(
    SOURCES.filter(({ name }) => !/^(?:[a-z0-9]+(?:-[a-z0-9]+)*\/)*[a-z0-9]+(?:-[a-z0-9]+)*\.tsx?$/.test(name)).map(
      ({ name }) => name,
    ),
    'rename it: small letters, with hyphens between words',
  ).toEqual([])
  const long = SOURCES.filter(({ lines }) => lines > 400).map(({ name, lines }) => `${name}: ${lines}`)
  expect(long, 'divide it by subject').toEqual([])
})

describe('no function passes 120 lines', () => {
  const MAX_LINES = 120
  const tooLong = (text: string) => functionLengths(text).filter(({ lines }) => lines > MAX_LINES)

  test('of this project', () => {
    const long = SOURCES.flatMap(({ name: file, text }) => tooLong(text).map((one) => ({ file, ...one })))
    expect(
      long.map(({ file, name, line, lines }) => `${file}:${line} ${name}: ${lines} lines`),
      'cut it by subject, with what is shared as a named object',
    ).toEqual([])
    const all = SOURCES.reduce((sum, { text }) => sum + functionLengths(text).length, 0)
    expect(all).toBeGreaterThan(3_000)
  })

  const body = (lines: number, indent = '  ') => Array.from({ length: lines }, () => `${indent}work()`).join('\n')

  test.each([
    ['a function', `export async function big(one: One): Promise<Two> {\n${body(119)}\n}`],
    ['a generator', `function* big() {\n${body(119)}\n}`],
    ['an arrow function', `const big = (one: One) => {\n${body(119)}\n}`],
    ['one that is handed on', `const x = 1\n\nexport const big = endpoint('GET C/x', async () => {\n${body(119)}\n})`],
    ['one with parameters on lines of their own', `function big(\n  one: One,\n): Two {\n${body(117)}\n}`],
    [
      'one with its parts on lines of their own',
      `function big({\n  one,\n}: Pick<Parts, 'one'> & {\n  two: Two\n}): Two {\n${body(115)}\n}`,
    ],
    [
      'an arrow function with parameters on lines of their own',
      `const big = async (\n  one: One,\n): Promise<Two> => {\n${body(117)}\n}`,
    ],
    ['a method', `class Holder {\n  async big<T>(one: T): Promise<T> {\n${body(119, '    ')}\n  }\n}`],
    [
      'a method with parameters on lines of their own',
      `  return {\n    big(\n      one: One,\n    ): Two {\n${body(117, '      ')}\n    },\n  }`,
    ],
    ['one that holds many short ones', `function big() {\n${`  function small() {\n    work()\n  }\n`.repeat(40)}}`],
  ])('%s of 121 lines is found', (_what, text) => {
    expect(tooLong(text)).toEqual([
      { name: 'big', line: text.split('\n').findIndex((line) => line.includes('big')) + 1, lines: expect.any(Number) },
    ])
    expect(tooLong(text)[0]!.lines).toBeGreaterThan(MAX_LINES)
  })

  test.each([
    ['a function of 120 lines', `function fits() {\n${body(118)}\n}`],
    ['a class of many short methods', `class Many {\n${`  fits() {\n    work()\n  }\n\n`.repeat(60)}}`],
    ['an interface', `export interface Parts {\n${body(200)}\n}`],
    ['a list', `export const LIST = [\n${body(200)}\n]`],
    ['a call', `  work(\n${body(200, '    ')}\n  )`],
    ['a condition', `if (\n  one\n) {\n${body(200)}\n}`],
    ['functions after each other', `function one() {\n${body(100)}\n}\n\nfunction two() {\n${body(100)}\n}`],
  ])('%s is not', (_what, text) => {
    expect(tooLong(text)).toEqual([])
  })
})

test('context.ts is a list of areas that can be read', () => {
  const context = SOURCES.find(({ name }) => name === 'context.ts')
  expect(context?.lines, 'an area is one call: give it a factory of its own').toBeLessThanOrEqual(121)
})

describe('wiring names what it gives', () => {
  const isWiring = (name: string) => TOP.has(name) || /^domain\/.*-(?:services|base)\.ts$/.test(name)

  test('in every file that puts services together', () => {
    const wiring = SOURCES.filter(({ name }) => isWiring(name))
    expect(wiring.length).toBeGreaterThan(25)
    const hidden = wiring.flatMap(({ name, code }) => objectSpreads(code).map((spread) => `${name}: ${spread}`))
    expect(hidden, 'write each part by its name, so that a reader sees who gets what').toEqual([])
  })

  test.each([
    ['{ ...base, db }', ['...base']],
    ['f({\n  db,\n  ...parts.base,\n})', ['...parts.base']],
    ['({ a: [1], ...base })', ['...base']],
    ['[...rooms.running, { name: x }]', []],
    ['f(...all)', []],
    ['({ a: [...all], b: f(...all) })', []],
    ['({ ...(captcha && { stage: captcha }) })', []],
  ])('%j', (code, found) => {
    expect(objectSpreads(code)).toEqual(found)
  })
})

/** The names that are spread into objects. */
function objectSpreads(code: string): string[] {
  const open: string[] = []
  const found: string[] = []
  for (const [token] of code.matchAll(/[([{]|[)\]}]|\.\.\.\w+(?:\.\w+)*/g)) {
    if ('([{'.includes(token)) open.push(token)
    else if (')]}'.includes(token)) open.pop()
    else if (open.at(-1) === '{') found.push(token)
  }
  return found
}

describe('what a start does not need', () => {
  const ON_DEMAND = [
    'ajv',
    'aws4fetch',
    'htmlparser2',
    'jose',
    'ldapts',
    'libphonenumber-js/max',
    'nodemailer',
    're2js',
    'sharp',
  ]

  test.each(ON_DEMAND)('A3: %s is loaded when it is needed', (name) => {
    const holders = SOURCES.filter(({ code }) => new RegExp(`^import (?!type )[^;']*from '${name}'`, 'm').test(code))
    expect(holders.map((source) => source.name)).toEqual([])
  })

  test('A3: openid-client is loaded when somebody signs in with a provider', () => {
    const holders = SOURCES.filter(({ code }) => /^import (?!type )[^;']*from 'openid-client'/m.test(code))
    const importers = SOURCES.filter(({ code }) => /from '[^']*openid-code-flow\.ts'/.test(code))
    expect(holders.map(({ name }) => name)).toEqual(['outbound/openid-code-flow.ts'])
    expect(importers).toEqual([])
  })

  test('oidc-provider is loaded when somebody signs in by OAuth', () => {
    const holders = SOURCES.filter(({ code }) =>
      /^import (?!type )[^;']*from '(?:oidc-provider|light-my-request)'/m.test(code),
    )
    const names = holders.map(({ name }) => name)
    expect(names).toEqual(['domain/oauth/authorization-server.ts', 'domain/oauth/provider-configuration.ts'])
    const others = SOURCES.filter(({ name }) => !names.includes(name))
    const importers = others.filter(({ code }) =>
      /^(?:import|export) (?!type )[^;']*from '[^']*(?:authorization-server|provider-configuration)\.ts'/m.test(code),
    )
    expect(importers).toEqual([])
  })
})

describe('the packages that the design names', () => {
  test.each(['fastify', '@fastify/cors', 'pg', 'tweetnacl', 'canonical-json', 'ajv', 'pino'])(
    'D4: %s is in use',
    (name) => {
      const uses = new RegExp(`(?:from|import\\(?) ?'${name}(?:/[^']*)?'`)
      expect(SOURCES.some(({ code }) => uses.test(code))).toBe(true)
    },
  )
})
