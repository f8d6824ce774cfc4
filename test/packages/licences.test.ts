import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { PROJECT_ROOT } from '../support/project.ts'

interface LockedPackage {
  readonly license?: string
  readonly dev?: boolean
  /** A folder of this project, which its own entry describes. */
  readonly link?: boolean
}

/** Licences that ask for no more than their own text beside the program. */
const PERMISSIVE = new Set([
  '0BSD',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'BlueOak-1.0.0',
  'ISC',
  'MIT',
  'MIT-0',
  'Unlicense',
])

/** Packages that may have another licence, and why. */
const OTHERS: readonly (readonly [name: RegExp, licence: RegExp, why: string])[] = [
  [
    /^@img\/sharp-(libvips-|wasm32$|win32-)/,
    /^(Apache-2\.0 AND )?LGPL-3\.0-or-later( AND MIT)?$/,
    'libvips is a library in a file of its own, unchanged, which anybody can replace: the LGPL asks no more',
  ],
]

const lock = JSON.parse(readFileSync(join(PROJECT_ROOT, 'package-lock.json'), 'utf8')) as {
  packages: Record<string, LockedPackage>
}

/** What a release consists of besides Hearth itself. */
const shipped = Object.entries(lock.packages).flatMap(([path, { license, dev, link }]) => {
  const name = /.*node_modules\/(.+)$/.exec(path)?.[1]
  return name === undefined || dev || link ? [] : [{ path, name, licence: license ?? 'none' }]
})

const isFine = ({ name, licence }: { readonly name: string; readonly licence: string }) =>
  PERMISSIVE.has(licence) || OTHERS.some(([names, licences]) => names.test(name) && licences.test(licence))

test('every library of a release has a permissive licence, or one that is accepted for a reason', () => {
  expect(shipped.length).toBeGreaterThan(100)
  expect(shipped.filter((each) => !isFine(each))).toEqual([])
})

test('what is accepted for a reason is still there', () => {
  for (const [names, licences] of OTHERS)
    expect(shipped.some(({ name, licence }) => names.test(name) && licences.test(licence))).toBe(true)
  expect(isFine({ name: 'left-pad', licence: 'GPL-3.0-only' })).toBe(false)
  expect(isFine({ name: 'left-pad', licence: 'LGPL-3.0-or-later' })).toBe(false)
})

test('the lock file says of each installed library what the library itself says', () => {
  const installed = shipped.filter(({ path }) => existsSync(join(PROJECT_ROOT, path, 'package.json')))
  expect(installed.length).toBeGreaterThan(100)
  const other = installed.filter(({ path, licence }) => {
    const { license } = JSON.parse(readFileSync(join(PROJECT_ROOT, path, 'package.json'), 'utf8'))
    return license !== licence
  })
  expect(other).toEqual([])
})
