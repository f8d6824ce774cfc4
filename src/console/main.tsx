import { render } from 'preact'
import { App } from './app.tsx'
import { comeBack } from './leave.ts'
import { language } from './words.ts'

const root = document.getElementById('app')
if (root !== null) {
  document.documentElement.lang = language
  comeBack()
  root.replaceChildren()
  render(<App />, root)
  performance.mark('drawn')
}
