// Gives Airflow's UI a component under the name of each app, as registration.py says.
import { Deployments } from "./deployments";
import { React, useLocation } from "./host";
import { Overview } from "./overview";
import { placeIn } from "./places";
import styles from "./styles.css";

function FlinkDeployments() {
  const place = placeIn(useLocation().search);
  void place;
  return <Deployments />;
}

function register(): void {
  // Not a <style> element, which a strict content security policy refuses.
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(styles);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  Object.assign(globalThis, {
    "Flink deployments": FlinkDeployments,
    "Flink overview": Overview,
  });
}

register();
