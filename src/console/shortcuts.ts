import { useEffect, useState } from 'preact/hooks'
import { go, to } from './router.ts'
import { SECTIONS } from './sections.ts'

const CHORD_MS = 1_500

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest('input, textarea, select, dialog') !== null
}

/** `/` searches, `g` and a letter goes to a page, `?` shows what keys there are. */
export function useShortcuts(): { readonly isHelpShown: boolean; hideHelp(): void } {
  const [isHelpShown, setHelpShown] = useState(false)
  useEffect(() => {
    let goingSince = 0
    function pressed(event: KeyboardEvent): void {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return
      const section = SECTIONS.find(({ key }) => key === event.key)
      if (Date.now() - goingSince < CHORD_MS && section !== undefined) {
        goingSince = 0
        event.preventDefault()
        go(to([section.id].filter(Boolean)))
        return
      }
      goingSince = event.key === 'g' ? Date.now() : 0
      if (event.key === '/') {
        event.preventDefault()
        document.querySelector<HTMLElement>('[data-search]')?.focus()
      } else if (event.key === '?') setHelpShown(true)
    }
    document.addEventListener('keydown', pressed)
    return () => document.removeEventListener('keydown', pressed)
  }, [])
  return { isHelpShown, hideHelp: () => setHelpShown(false) }
}
