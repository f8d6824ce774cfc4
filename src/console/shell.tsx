import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { call } from './api.ts'
import { facts } from './facts.ts'
import { useActing } from './parts/acting.tsx'
import { to, usePlace } from './router.ts'
import { SECTIONS } from './sections.ts'
import { useShortcuts } from './shortcuts.ts'
import { LANGUAGES, type Language, language, rich, speak, t } from './words.ts'

export function Flame() {
  return (
    <svg viewBox="0 0 64 64" aria-hidden="true" class="flame">
      <path class="outer" d="M33 3c3 12 19 18 19 36a20 20 0 0 1-40 0c0-9 5-14 8-20 1 4 3 6 6 7 0-9 2-17 7-23z" />
      <path class="inner" d="M33 30c2 6 9 9 9 17a10 10 0 0 1-20 0c0-5 3-8 5-11 1 2 2 3 3 3 0-4 1-6 3-9z" />
    </svg>
  )
}

/** The menu around every page. */
export function Shell({ children }: { readonly children: ComponentChildren }) {
  const { parts } = usePlace()
  const [isOpen, setOpen] = useState(false)
  const { isHelpShown, hideHelp } = useShortcuts()
  const { run } = useActing()
  const current = parts[0] ?? ''
  // The menu of a phone closes when one goes somewhere.
  const place = parts.join('/')
  useEffect(() => setOpen(false), [place])

  async function signOut(): Promise<void> {
    const isDone = await run(t('Signed out.'), () => call('DELETE', '/_hearth/admin/v1/session'))
    if (isDone) location.assign('/_hearth/account')
  }

  return (
    <>
      <button
        type="button"
        class="skip"
        onClick={() => {
          document.querySelector<HTMLElement>('main h1')?.focus()
        }}
      >
        {t('Skip to the content')}
      </button>
      <div class="side">
        <div class="brand">
          <a href={to([])} aria-label={t('{server}: overview', { server: facts.server_name })}>
            <Flame />
            <span>{facts.server_name}</span>
          </a>
          <button
            type="button"
            class="quiet small menu"
            aria-expanded={isOpen}
            aria-controls="menu"
            onClick={() => setOpen(!isOpen)}
          >
            {t('Menu')}
          </button>
        </div>
        <nav id="menu" aria-label={t('Console')} class={isOpen ? 'open' : undefined}>
          {SECTIONS.map(({ id, title }) => (
            <a key={id} href={to([id].filter(Boolean))} aria-current={id === current ? 'page' : undefined}>
              {t(title)}
            </a>
          ))}
          <div class="who">
            <bdi class="soft">{facts.user_id}</bdi>
            <button type="button" class="quiet small" onClick={() => void signOut()}>
              {t('Sign out')}
            </button>
            <Languages />
          </div>
        </nav>
      </div>
      <main id="content">
        {children}
        <footer class="soft">
          Hearth {facts.version} · {rich('{key} shows the keys', { key: <kbd>?</kbd> })}
        </footer>
      </main>
      {isHelpShown && <Keys close={hideHelp} />}
    </>
  )
}

/** Each language is called as its speakers call it. */
function Languages() {
  return (
    <label class="choice">
      <span class="hidden">{t('Language')}</span>
      <select value={language} onChange={(event) => speak(event.currentTarget.value as Language)}>
        {Object.entries(LANGUAGES).map(([id, name]) => (
          <option key={id} value={id} lang={id}>
            {name}
          </option>
        ))}
      </select>
    </label>
  )
}

function Keys({ close }: { readonly close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => dialog.current?.showModal(), [])
  return (
    <dialog ref={dialog} aria-labelledby="keys" onClose={close}>
      <h2 id="keys">{t('Keys')}</h2>
      <dl class="keys">
        <div>
          <dt>
            <kbd>/</kbd>
          </dt>
          <dd>{t('Search')}</dd>
        </div>
        {SECTIONS.map(({ title, key }) => (
          <div key={key}>
            <dt>
              <kbd>g</kbd> <kbd>{key}</kbd>
            </dt>
            <dd>{t(title)}</dd>
          </div>
        ))}
      </dl>
      <p class="actions">
        <button type="button" onClick={close}>
          {t('Close')}
        </button>
      </p>
    </dialog>
  )
}
