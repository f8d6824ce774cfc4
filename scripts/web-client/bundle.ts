import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { copyFile, cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { build, type Plugin } from 'esbuild'
import { PROJECT_ROOT } from '../../test/support/project.ts'

/** The user interface of Element Web 1.11.82, as its makers published it last as a package. */
export const CLIENT = { name: 'matrix-react-sdk', version: '3.114.0' } as const

/** What it depends on is of its own time where something newer does not fit it any more. */
const OF_ITS_TIME = {
  '@vector-im/compound-web': '7.0.0',
  '@vector-im/compound-design-tokens': '1.8.0',
  '@radix-ui/react-form': '0.1.0',
}

/** With what its styles are made plain. */
const STYLE_TOOLS = ['', '-scss', '-import', '-mixins', '-simple-vars', '-nested', '-easings', '-hexrgba'].map(
  (name) => `postcss${name}`,
)

/** What bundlers know how to give a page. */
const PAGE_TOOLS = { 'matrix-web-i18n': '3.2.1', util: '0.12.5', buffer: '6.0.3' }

const run = promisify(execFile)

/** Installs the client into a folder, without scripts, and bundles it for a browser. Returns the folder to serve. */
export async function bundleClient(folder: string): Promise<string> {
  await mkdir(folder, { recursive: true })
  await install(folder)
  const site = join(folder, 'site')
  await rm(site, { recursive: true, force: true })
  await mkdir(join(site, 'workers'), { recursive: true })
  const shell = join(folder, 'shell')
  await cp(join(PROJECT_ROOT, 'scripts/web-client/shell'), shell, { recursive: true })
  await Promise.all([
    bundleCode(folder, site),
    bundleWorkers(folder, site),
    bundleStyles(folder, site),
    bundleFriend(site),
  ])
  for (const name of ['index.html', 'sw.js']) await copyFile(join(shell, name), join(site, name))
  const strings = join(folder, 'node_modules', CLIENT.name, 'src/i18n/strings/en_EN.json')
  await mkdir(join(site, 'i18n'), { recursive: true })
  await copyFile(strings, join(site, 'i18n/en_EN.json'))
  await writeFile(join(site, 'i18n/languages.json'), JSON.stringify({ en: 'en_EN.json' }))
  await cp(join(folder, 'node_modules', CLIENT.name, 'res/media'), join(site, 'media'), { recursive: true })
  const crypto = join(folder, 'node_modules/@matrix-org/matrix-sdk-crypto-wasm/pkg')
  await cp(crypto, join(site, 'pkg'), { recursive: true, filter: (path) => !/\.(?:js|cjs|mjs|ts)$/.test(path) })
  return site
}

async function install(folder: string): Promise<void> {
  const styleTools = Object.fromEntries(STYLE_TOOLS.map((name) => [name, '*']))
  const dependencies = { [CLIENT.name]: CLIENT.version, ...PAGE_TOOLS, ...styleTools }
  const manifest = JSON.stringify({ private: true, dependencies, overrides: OF_ITS_TIME }, null, 2)
  const file = join(folder, 'package.json')
  if (existsSync(join(folder, 'node_modules')) && (await readFile(file, 'utf8').catch(() => '')) === manifest) return
  await writeFile(file, manifest)
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--legacy-peer-deps']
  await run('npm', ['install', ...flags], { cwd: folder, maxBuffer: 1 << 24 })
}

const LOADERS = Object.fromEntries(
  ['png', 'gif', 'jpg', 'woff', 'woff2', 'ttf', 'otf', 'ogg', 'mp3', 'wasm'].map((kind) => [
    `.${kind}`,
    'file' as const,
  ]),
)

const TARGET = { bundle: true, platform: 'browser', logLevel: 'error', loader: LOADERS } as const
const DEFINES = { 'process.env.NODE_ENV': '"production"', 'process.env.VERSION': '"test"', global: 'globalThis' }

async function bundleCode(folder: string, site: string): Promise<void> {
  await build({
    ...TARGET,
    absWorkingDir: folder,
    entryPoints: { main: join(folder, 'shell/main.js') },
    inject: [join(folder, 'shell/globals.js')],
    outdir: site,
    publicPath: '/',
    assetNames: 'assets/[name]-[hash]',
    format: 'esm',
    splitting: true,
    chunkNames: 'chunks/[hash]',
    minify: true,
    define: { ...DEFINES, process: '{"env":{"NODE_ENV":"production"}}' },
    nodePaths: [join(folder, 'node_modules')],
    plugins: [compiled, once, workers, rawText, languages, scripts, pictures(join(folder, 'node_modules'))],
  })
}

/** A page with our own matrix-js-sdk. */
async function bundleFriend(site: string): Promise<void> {
  const entry = join(PROJECT_ROOT, 'scripts/web-client/shell/friend.js')
  await build({ ...TARGET, entryPoints: [entry], outdir: site, format: 'iife', define: DEFINES, publicPath: '/' })
  await writeFile(join(site, 'friend.html'), '<!doctype html><title>Friend</title><script src="/friend.js"></script>')
}

async function bundleWorkers(folder: string, site: string): Promise<void> {
  const sources = join(folder, 'node_modules', CLIENT.name, 'lib/workers')
  const names = ['blurhash', 'indexeddb', 'playback']
  const entryPoints = Object.fromEntries(names.map((name) => [`${name}.worker`, join(sources, `${name}.worker.js`)]))
  const options = { ...TARGET, outdir: join(site, 'workers'), define: DEFINES, format: 'iife' } as const
  await build({ ...options, absWorkingDir: folder, entryPoints, minify: true })
}

/** Some of the compiled files name others by what they were compiled from. */
const compiled: Plugin = {
  name: 'compiled',
  setup({ onResolve }) {
    onResolve({ filter: /^\.{1,2}\/(?:.*\.tsx?$|(?:\.\.\/)*src\/)/ }, ({ path, resolveDir, importer }) => {
      if (!importer.includes('/matrix-react-sdk/lib/')) return undefined
      const file = join(resolveDir, path).replace('/matrix-react-sdk/src/', '/matrix-react-sdk/lib/')
      return { path: `${file.replace(/\.tsx?$/, '')}.js` }
    })
  },
}

/** Packages in two forms are taken in one: parts of a form that are from different copies do not know each other. */
const once: Plugin = {
  name: 'once',
  setup({ onResolve, resolve }) {
    onResolve({ filter: /^@(?:vector-im|radix-ui)\// }, ({ path, kind, resolveDir, importer }) =>
      kind === 'require-call' ? resolve(path, { kind: 'import-statement', resolveDir, importer }) : undefined,
    )
  },
}

/** A worker is made from a file beside the page. */
const workers: Plugin = {
  name: 'workers',
  setup({ onLoad }) {
    // Nobody in the story speaks.
    onLoad({ filter: /recorderWorkletFactory\.js$/ }, () => ({ contents: 'export default async () => undefined' }))
    onLoad({ filter: /workers\/\w+WorkerFactory\.js$/ }, ({ path }) => {
      const address = `/workers/${basename(path).replace('WorkerFactory.js', '')}.worker.js`
      return { contents: `export default (options) => new Worker(${JSON.stringify(address)}, options)` }
    })
  },
}

/** `!!raw-loader!./file`: its text. */
const rawText: Plugin = {
  name: 'raw text',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^!!raw-loader!/ }, ({ path, resolveDir }) => {
      const file = join(resolveDir, path.slice('!!raw-loader!'.length))
      const found = [file, `${file}.js`, file.replace('/lib/', '/src/')].find((one) => existsSync(one))
      return found === undefined ? undefined : { path: found, namespace: 'raw' }
    })
    onLoad({ filter: /.*/, namespace: 'raw' }, async ({ path }) => ({
      contents: `export default ${JSON.stringify(await readFile(path, 'utf8'))}`,
    }))
  },
}

const languages: Plugin = {
  name: 'languages',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^\$webapp\/i18n\/languages\.json$/ }, ({ path }) => ({ path, namespace: 'languages' }))
    onLoad({ filter: /.*/, namespace: 'languages' }, () => ({ contents: 'export default "/i18n/languages.json"' }))
  },
}

/** Scripts that the client wants the address of. */
const scripts: Plugin = {
  name: 'scripts',
  setup({ onLoad }) {
    onLoad(
      { filter: /opus-recorder\/dist\/(?:encoderWorker|decoderWorker|waveWorker)\.min\.js$/ },
      async ({ path }) => ({
        contents: await readFile(path),
        loader: 'file',
      }),
    )
  },
}

/** A picture is its address, and an element that shows it. */
const pictures = (modules: string): Plugin => ({
  name: 'pictures',
  setup({ onLoad }) {
    onLoad({ filter: /\.svg$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8')
      const address = `data:image/svg+xml;base64,${Buffer.from(text).toString('base64')}`
      const [, head = '', inner = ''] = /<svg([^>]*)>([\s\S]*)<\/svg>/.exec(text) ?? []
      const attribute = (name: string) => new RegExp(`\\s${name}="([^"]*)"`).exec(head)?.[1]
      const names = ['viewBox', 'width', 'height', 'fill'] as const
      const given = Object.fromEntries(names.flatMap((name) => (attribute(name) ? [[name, attribute(name)]] : [])))
      const contents = `
        import React from 'react'
        export default ${JSON.stringify(address)}
        export const Icon = (props) => React.createElement('svg', {
          ...${JSON.stringify(given)}, ...props, dangerouslySetInnerHTML: { __html: ${JSON.stringify(inner)} } })`
      return { contents, resolveDir: modules }
    })
  },
})

/** The light theme, in one file. */
async function bundleStyles(folder: string, site: string): Promise<void> {
  const from = createRequire(join(folder, 'package.json'))
  const plugin = (name: string) => from(name)()
  const postcss = from('postcss')
  const client = join(folder, 'node_modules', CLIENT.name)
  const source = join(client, 'res/themes/light/css/light.pcss')
  const names = ['import', 'mixins', 'simple-vars', 'nested', 'easings', 'hexrgba']
  const plugins = names.map((name) => plugin(`postcss-${name}`))
  const { css } = await postcss(plugins).process(await readFile(source, 'utf8'), {
    ...{ from: source, to: source, syntax: from('postcss-scss') },
  })
  const plain = join(dirname(source), 'plain.css')
  await writeFile(plain, css)
  await build({
    ...TARGET,
    loader: { ...LOADERS, '.svg': 'file' },
    entryPoints: { 'theme-light': plain },
    outdir: site,
    publicPath: '/',
    assetNames: 'assets/[name]-[hash]',
    minify: true,
    plugins: [missing],
  })
}

/** What a style sheet names and nobody has is left as it is named. */
const missing: Plugin = {
  name: 'missing',
  setup({ onResolve, resolve }) {
    onResolve({ filter: /.*/ }, async ({ path, kind, importer, resolveDir, pluginData }) => {
      if (kind !== 'url-token' || pluginData === 'asked') return undefined
      const found = await resolve(path, { kind, importer, resolveDir, pluginData: 'asked' })
      return found.errors.length > 0 ? { path, external: true } : found
    })
  },
}
