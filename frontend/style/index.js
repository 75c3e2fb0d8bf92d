import 'uplot/dist/uPlot.min.css';
import './chart.css';
import './dashboard.css';
import './labs.css';
import './live.css';
import './panel.css';
import './report.css';
import './timeline.css';
