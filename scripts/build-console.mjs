import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))
const target = join(root, 'dist/console')

/**
 * Makes dist/console/ of src/console/: files for browsers, each named by a hash of its content, plain and compressed. The list of them is
 * written last and at once, so that a server never reads half of it.
 */
export async function buildConsole() {
  const { metafile, outputFiles } = await build({
    entryPoints: { console: join(root, 'src/console/main.tsx'), style: join(root, 'src/console/style/console.css') },
    outdir: target,
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    bundle: true,
    splitting: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: ['es2022', 'chrome111', 'firefox115', 'safari16.4'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    metafile: true,
    write: false,
    logLevel: 'warning',
  })
  const icon = readFileSync(join(root, 'src/console/style/icon.svg'))
  const print = createHash('sha256').update(icon).digest('hex').slice(0, 8)
  const made = [
    ...outputFiles.map(({ path, contents }) => ({ name: basename(path), contents })),
    { name: `icon-${print}.svg`, contents: icon },
  ]
  mkdirSync(target, { recursive: true })
  for (const { name, contents } of made) {
    writeFileSync(join(target, name), contents)
    writeFileSync(join(target, `${name}.gz`), gzipSync(contents, { level: 9 }))
  }
  const outputs = Object.entries(metafile.outputs)
  const outputOf = (entry) => basename(outputs.find(([, { entryPoint }]) => entryPoint?.endsWith(entry))[0])
  const list = {
    script: outputOf('main.tsx'),
    style: outputOf('console.css'),
    icon: `icon-${print}.svg`,
    files: made.map(({ name }) => name),
  }
  writeFileSync(join(target, 'files.json.new'), JSON.stringify(list))
  renameSync(join(target, 'files.json.new'), join(target, 'files.json'))
  const kept = new Set([...list.files.flatMap((name) => [name, `${name}.gz`]), 'files.json'])
  for (const name of readdirSync(target)) if (!kept.has(name)) rmSync(join(target, name), { force: true })
  return list
}
